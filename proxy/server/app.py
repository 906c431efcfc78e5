"""The proxy process: builds everything from the settings, runs it, and drains."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import uvloop
from aiohttp import web

from proxy.admin.authority import Authority
from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.configs.alter_describe import ResourceConfigs
from proxy.admin.configs.create_topics import TopicCreations
from proxy.admin.configs.deleted_topics import DeletedTopics
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.dispatch import AdminApis
from proxy.admin.mutations.mutations import ControllerMutations
from proxy.quota.engine import QuotaEngines
from proxy.quota.kinds import controller_mutation
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.kinds.replication import kind as replication
from proxy.quota.kinds.replication.kind import Replication
from proxy.quota.kinds.replication.state import ReplicationState
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import BucketState
from proxy.quota.quota import QuotaKind
from proxy.security.access import Access
from proxy.security.secrets import read_secret
from proxy.security.tls import POLL_SECONDS, TlsFiles, server_tls
from proxy.server.connection.drain import DRAIN_POLL_SECONDS
from proxy.server.garbage_collection import GarbageCollection, gc_paused
from proxy.server.listener.admission import Admission
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.ports import BACKLOG, bind
from proxy.server.listener.replication_gateway import ReplicationGateway
from proxy.server.malloc import keep_freed_memory
from proxy.server.rejection_log import RejectionLog
from proxy.server.reload import Reload
from proxy.server.usage import usage_reporter
from proxy.store.from_settings import Configuration
from proxy.store.kafka_topic import KafkaTopic
from proxy.store.quota_store import QuotaStore
from proxy.tasks import Tasks
from proxy.telemetry.guard import Guard
from proxy.telemetry.http import AdminSite
from proxy.telemetry.metrics.metrics import ProxyCollector
from proxy.telemetry.metrics.rejections import rejection_families
from proxy.telemetry.metrics.replication import endless, replication_families
from proxy.telemetry.usage.reporter import UsageReporter

log = logging.getLogger(__name__)
FORGET_EVERY_SECONDS: Final = 60.0
WATCH_THROTTLES_SECONDS: Final = 2.0
SAY_AGAIN_SECONDS: Final = 60.0
"""How often the log says of a throttle that it is too low."""
REPLICATION_WAITS_SECONDS: Final = 5.0
"""How long followers wait for the quotas; one that fetches nothing for 30 s leaves the in-sync replicas."""
SECONDS_OF_DAY: Final = 86400.0
WARN_DAYS: Final = 14.0
"""A certificate that ends sooner than this is a warning."""


def run(configuration: Configuration, kinds: Sequence[QuotaKind], path: Path) -> int:
    """Serve until SIGTERM or SIGINT, then drain; returns the exit code. PortInUse where a port is taken."""
    keep_freed_memory()
    with gc_paused():
        proxy = Proxy(configuration, kinds, path)
    GarbageCollection().start()
    uvloop.run(proxy.serve())
    return 0


class Proxy:
    """All listeners, the admin port, and the store of quotas."""

    def __init__(self, configuration: Configuration, kinds: Sequence[QuotaKind], path: Path) -> None:
        """`configuration` is that of the file `path`."""
        self._settings: Final = configuration.settings
        self._kinds: Final = list(kinds)
        self._rules: Final = configuration.rules
        self._store: Final = QuotaStore(configuration.quotas, self._configure, rules=self._rules)
        self._engines: Final = QuotaEngines(self._kinds, self._store.limits)
        self._reload: Final = Reload(path, configuration.settings, kinds, self._use_file)
        tls = self._settings.admin.tls
        self._admin_tls: Final = None if tls is None else server_tls(tls, ("admin", "tls"))
        self._authority: Final = Authority(self._settings.quotas.changes)
        self._topic: KafkaTopic | None = None
        self._gateways: list[Gateway] = []
        self._replication: Final[list[ReplicationGateway]] = []
        """Of the gateways, those of replication listeners."""
        self._usage: UsageReporter | None = None
        self._access: Access | None = None
        """How the store's topic is reached."""
        self._draining = False

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        tasks = Tasks()
        loop.add_signal_handler(signal.SIGHUP, lambda: tasks.start(self._reload.reload("SIGHUP")))
        self._open_store(tasks)
        mutations = self._mutations(loop)
        apis = self._admin_apis(mutations)
        admission = Admission(
            self._settings.limits.max_connections, self._settings.limits.max_connections_per_ip
        )
        for listener in self._settings.client_listeners:
            gateway = Gateway(self._settings, listener, self._engines, admission, apis, mutations, tasks)
            self._gateways.append(gateway)
        asking = next((gateway for gateway in self._gateways if gateway.listener.asks), self._gateways[0])
        cluster = asking.cluster
        # Followers name topics by id: of one whose name is not known, nothing can be held back.
        cluster.want_topics = len(self._settings.client_listeners) < len(self._settings.listeners)
        for listener in self._settings.listeners:
            if listener.replication:
                self._replication.append(
                    ReplicationGateway(
                        self._settings, listener, self._engines, admission, apis, mutations, tasks, cluster
                    )
                )
        self._use_cluster_of(asking)
        topics = self._watch_topics(loop.time)
        self._gateways += self._replication
        self._open_usage(tasks)
        admin = await self._serve_admin(loop)
        tasks.start(self._start_gateways())
        tasks.start(self._start_replication())
        tasks.start(self._watch_throttles(loop))
        tasks.start(topics.run())
        tasks.start(self._reload.watch())
        tasks.start(self._refresh_certificates())
        tasks.start(self._forget_idle(loop))
        tasks.start(RejectionLog(self._engines, loop.time).run())
        await stop.wait()
        await self._drain(loop)
        if self._usage is not None:
            await self._usage.finish()
        await tasks.cancel()
        await self._close_store()
        for gateway in self._gateways:
            gateway.close()
        await admin.cleanup()

    def _open_usage(self, tasks: Tasks) -> None:
        self._usage = usage_reporter(self._settings, self._gateways)
        if self._usage is not None:
            for sink in self._usage.sinks:
                tasks.start(sink.run())
            tasks.start(self._usage.run())

    def _watch_topics(self, time: Callable[[], float]) -> DeletedTopics:
        asking = [gateway for gateway in self._gateways if gateway.listener.asks]
        return DeletedTopics(self._store, asking, time)

    def _use_cluster_of(self, asking: Gateway) -> None:
        """Have the quotas, and gateways that may not ask, know the cluster by one that may."""
        asking.feeds_quotas = True
        for gateway in self._gateways:
            if not gateway.listener.asks:
                gateway.use_cluster_of(asking.cluster)

    # Quotas

    def _open_store(self, tasks: Tasks) -> None:
        self._store.start()
        store = self._settings.quotas.store
        if store == "none":
            return
        listeners = self._settings.client_listeners
        listener = next((listener for listener in listeners if listener.asks), listeners[0])
        upstream = listener.upstream
        at = ("listeners", self._settings.listeners.index(listener), "upstream")
        self._access = Access(upstream.tls, upstream.sasl, at)
        seconds = self._settings.limits.connect_seconds
        self._topic = KafkaTopic(upstream.addresses, store.topic, self._store, tasks, seconds, self._access)
        self._store.log = self._topic
        tasks.start(self._topic.run())

    def _admin_apis(self, mutations: ControllerMutations) -> AdminApis:
        client_quotas = ClientQuotas(self._store, [key for kind in self._kinds for key in kind.keys])
        store, rules = ConfigsStore(self._store), self._rules
        creations = TopicCreations(store, rules, mutations)
        return AdminApis(client_quotas, ResourceConfigs(store, rules), creations, self._authority)

    def _mutations(self, loop: asyncio.AbstractEventLoop) -> ControllerMutations:
        quota = self._engines.shared(controller_mutation.KIND)
        assert isinstance(quota, ControllerMutation)
        return ControllerMutations(quota, loop.time)

    async def _close_store(self) -> None:
        self._store.close()
        if self._topic is not None:
            await self._topic.close()

    async def _start_gateways(self) -> None:
        """Serve clients once their quotas are known."""
        if self._topic is not None:
            await self._topic.loaded.wait()
        for gateway in self._gateways:
            if gateway not in self._replication:
                gateway.start()

    async def _start_replication(self) -> None:
        """Serve followers, once it is known which of them are throttled and behind. They do not wait long for
        that: without them the cluster may not have what is asked.
        """
        if self._replication:
            with suppress(TimeoutError):
                async with asyncio.timeout(REPLICATION_WAITS_SECONDS):
                    if self._topic is not None:
                        await self._topic.loaded.wait()
                    await self._replication[0].cluster.answered.wait()
        for gateway in self._replication:
            gateway.start()

    def _configure(self, limits: Limits) -> None:
        self._engines.configure(limits, asyncio.get_running_loop().time())
        if self._gateways:
            self._gateways[0].want_partitions()

    async def _use_file(self, configuration: Configuration) -> None:
        self._authority.settings = configuration.settings.quotas.changes
        await self._store.use_file(configuration.quotas)

    async def _serve_admin(self, loop: asyncio.AbstractEventLoop) -> web.AppRunner:
        collector = ProxyCollector(
            self._gateways,
            self._buckets,
            lambda: self._topic,
            lambda: bool(self._reload.problem),
            () if self._usage is None else self._usage.sinks,
            self._days_left,
            lambda: chain(
                rejection_families(self._engines, loop.time()),
                replication_families(
                    self._replication_state(),
                    chain.from_iterable(gateway.lags() for gateway in self._replication),
                    loop.time(),
                ),
            ),
        )
        site = AdminSite(
            collector.steps,
            self._problems,
            self._warnings,
            self._buckets,
            loop.time,
            self._days_left,
            self._replication_state,
            self._guard(),
        )
        runner = web.AppRunner(site.application(), access_log=None)
        await runner.setup()
        bound = bind(self._settings.admin.bind, self._settings.admin.port, "admin.port: ")
        context = None if self._admin_tls is None else self._admin_tls.following_context()
        await web.SockSite(runner, bound, backlog=BACKLOG, ssl_context=context).start()
        scheme = "http" if context is None else "https"
        log.info("admin port: %s://%s:%d", scheme, self._settings.admin.bind, bound.getsockname()[1])
        return runner

    def _guard(self) -> Guard:
        admin = self._settings.admin
        token = partial(read_secret, admin.token_file, admin.token_env) if admin.has_token else None
        return Guard(admin.bind, token, by_certificate=admin.by_certificate)

    def _replication_state(self) -> ReplicationState | None:
        for quota in self._engines.of_kind(replication.KIND):
            if self._replication and isinstance(quota, Replication):
                return quota.shared
        return None

    async def _watch_throttles(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say in the log which moves never end."""
        told: dict[tuple[str, int], float] = {}
        while True:
            await asyncio.sleep(WATCH_THROTTLES_SECONDS)
            state = self._replication_state()
            now = loop.time()
            for side, sentence in {} if state is None else endless(state, now).items():
                if now - told.get(side, -SAY_AGAIN_SECONDS) >= SAY_AGAIN_SECONDS:
                    told[side] = now
                    log.warning("%s", sentence)

    def _buckets(self) -> Iterator[tuple[int, BucketState]]:
        """Their states are asked for one by one, as they are wanted: there may be other work in between."""
        time = asyncio.get_running_loop().time
        for node_id, bucket in self._engines.live():
            yield node_id, bucket.state(time())

    def _problems(self) -> list[str]:
        problems = ["shutting down"] if self._draining else []
        if self._topic is not None and not self._topic.loaded.is_set():
            return [*problems, f"quotas: {self._topic.problem}"]
        return problems + [problem for gateway in self._gateways for problem in gateway.problems()]

    def _warnings(self) -> list[str]:
        """What is wrong and keeps no client from being served."""
        warnings = []
        if self._topic is not None and self._topic.loaded.is_set() and self._topic.problem:
            warnings.append(f"quotas stay as they are, and changes are rejected: {self._topic.problem}")
        warnings += [files.problem for files in self._tls_files() if files.problem]
        warnings += [
            f"{file}: its first certificate ends in {left:.1f} days"
            for file, left in self._days_left().items()
            if left < WARN_DAYS
        ]
        warnings += [warning for gateway in self._gateways for warning in gateway.warnings()]
        if self._reload.problem:
            warnings.append(f"the configuration loaded before stays in force: {self._reload.problem}")
        if self._usage is not None:
            warnings.extend(self._usage.problems)
        return warnings

    def _tls_files(self) -> list[TlsFiles]:
        accesses = [gateway.access for gateway in self._gateways]
        if self._access is not None:
            accesses.append(self._access)
        found = [gateway.tls for gateway in self._gateways] + [access.tls for access in accesses]
        found.append(self._admin_tls)
        return [files for files in found if files is not None]

    def _days_left(self) -> dict[str, float]:
        """Of each certificate, by file."""
        now = time.time()
        ends = {file: end for files in self._tls_files() for file, end in files.not_after.items()}
        return {file: (end - now) / SECONDS_OF_DAY for file, end in ends.items()}

    async def _refresh_certificates(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for files in self._tls_files():
                files.refresh()

    async def _forget_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            await asyncio.sleep(FORGET_EVERY_SECONDS)
            self._engines.forget_idle(loop.time())

    async def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take no more connections, deliver the answers that are due, and close what is idle.

        Followers go last: a produce with acks=all is answered when they have fetched it.
        """
        self._draining = True
        started = loop.time()
        deadline = started + self._settings.limits.drain_seconds
        count = sum(len(gateway.connections) for gateway in self._gateways)
        log.info("draining %d connections", count)
        of_clients = [gateway for gateway in self._gateways if gateway not in self._replication]
        for gateways in (of_clients, self._replication):
            for gateway in gateways:
                gateway.stop_listening()
            while any(gateway.connections or gateway.leaving for gateway in gateways):
                now = loop.time()
                for gateway in gateways:
                    for connection in (*gateway.connections, *gateway.leaving):
                        if now >= deadline:
                            connection.abort()
                        else:
                            connection.drain(now)
                await asyncio.sleep(DRAIN_POLL_SECONDS)
        cut = sum(gateway.closed.get("drain_timeout", 0) for gateway in self._gateways)
        log.info("drained in %.1f s; %d of %d connections were cut off", loop.time() - started, cut, count)
