"""The proxy process: builds everything from the configuration, serves until a signal, and drains."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from os import getpid
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, Final, Protocol

import uvloop

from proxy.admin.authority import Authority
from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.configs.alter import AlterConfigs
from proxy.admin.configs.create_topics import TopicCreations
from proxy.admin.configs.deleted_topics import DeletedTopics
from proxy.admin.configs.describe import DescribeConfigs
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.dispatch import AdminApis
from proxy.admin.mutations.mutations import ControllerMutations
from proxy.admin.protected_topic_ids import ProtectedTopicIds
from proxy.config.client_entries import without_entries
from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds import controller_mutation
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.kinds.replication import kind as replication
from proxy.quota.kinds.replication.kind import Replication
from proxy.quota.kinds.replication.state import ReplicationState
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket_state import BucketState
from proxy.quota.quota import QuotaKind
from proxy.relay.budgets.read_turns import PAUSE_SECONDS
from proxy.security.tls import server_tls
from proxy.server.admin_port.admin_port import AdminServer
from proxy.server.admin_port.readiness import Readiness
from proxy.server.admin_port.sources import AdminSources
from proxy.server.certificates import Certificates
from proxy.server.console.console import Console
from proxy.server.console.overview import overview
from proxy.server.limit_sharing import LimitSharing
from proxy.server.listener.brokers.quota_cluster_feed import QuotaClusterFeed
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.listeners import Listeners
from proxy.server.logs.callback_log import CallbackLog
from proxy.server.logs.rejection_log import RejectionLog
from proxy.server.logs.throttle_log import ThrottleLog
from proxy.server.reload import Reload
from proxy.server.system.garbage_collection import GarbageCollection, gc_paused
from proxy.server.system.malloc import keep_freed_memory
from proxy.server.system.service_manager import ServiceManager
from proxy.server.system.stop_requests import StopRequests
from proxy.server.usage import usage_reporter
from proxy.server.workers.link import WorkerLink
from proxy.store.from_settings import Configuration
from proxy.store.quota_store import QuotaStore
from proxy.tasks import Tasks
from proxy.telemetry.loop_lag import LoopLag
from proxy.telemetry.quota_table import QuotaTable
from proxy.telemetry.usage.reporter import UsageReporter
from proxy.wire.protected_topics import ProtectedTopics

if TYPE_CHECKING:
    from proxy.store.quota_topic import QuotaTopic

log = logging.getLogger(__name__)
FORGET_EVERY_SECONDS: Final = 60.0
"""Idle buckets cost memory only, so they need not be dropped any sooner."""

Work = Coroutine[Any, Any, None]


class Forgetting(Protocol):
    """QuotaEngines, or their stub."""

    def forget_idle(self, now: float) -> bool: ...


async def forget_idle(engines: Forgetting) -> None:
    """Drop the quotas' state that has not been used for an hour. The event loop serves connections between
    two steps.
    """
    time = asyncio.get_running_loop().time
    more = True
    while more:
        more = engines.forget_idle(time())
        await asyncio.sleep(PAUSE_SECONDS)


def build(
    configuration: Configuration,
    kinds: Sequence[QuotaKind],
    path: Path,
    early: EarlyPorts,
    link: WorkerLink | None = None,
) -> "Proxy":
    """The process for a configuration, which was loaded from `path`. Raises SettingsError.

    `link`: connects a worker to its supervisor; None for a process of its own.
    """
    keep_freed_memory()
    with gc_paused():
        return Proxy(configuration, kinds, path, early, link)


def run(proxy: "Proxy") -> int:
    """Serve until SIGTERM or SIGINT, then drain. Returns the exit code. Raises SettingsError or PortInUse."""
    GarbageCollection().start()
    uvloop.run(proxy.serve())
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What is built once the event loop runs."""

    listeners: Listeners
    topic: "QuotaTopic | None"
    sharing: LimitSharing | None
    usage: UsageReporter | None
    certificates: Certificates
    readiness: Readiness
    admin_port: AdminServer | None
    """None in a worker: the supervisor has the port."""
    loop_lag: LoopLag = field(default_factory=LoopLag)

    def work(self) -> Iterable[Work]:
        """The coroutines that serve clients and brokers, and those that these need."""
        yield self.listeners.start_clients(self._quotas_loaded)
        yield self.listeners.start_replication(self._topic_loaded)
        yield self.listeners.end_early()
        yield self.certificates.run()
        yield self.loop_lag.run()
        if self.topic is not None:
            yield self.topic.run()
        if self.sharing is not None:
            yield self.sharing.follow()
            yield self.sharing.run()
        if self.usage is not None:
            yield self.usage.run()
            for sink in self.usage.sinks:
                yield sink.run()

    async def _topic_loaded(self) -> None:
        if self.topic is not None:
            await self.topic.loaded.wait()

    async def _quotas_loaded(self) -> None:
        await self._topic_loaded()
        if self.sharing is not None:
            await self.sharing.until_joined()

    async def drain(self, seconds: float) -> None:
        """End the connections, for at most `seconds`; then hand over what other processes wait for."""
        await self.listeners.drain(seconds)
        if self.sharing is not None:
            await self.sharing.leave()
        if self.usage is not None:
            await self.usage.finish()

    async def close(self) -> None:
        """Close what is left, after the work has ended."""
        if self.topic is not None:
            await self.topic.close()
        self.listeners.close()
        if self.admin_port is not None:
            await self.admin_port.close()


class Proxy:
    """Owns what the parts of the process share: the quotas, their store, and the configuration file."""

    def __init__(
        self,
        configuration: Configuration,
        kinds: Sequence[QuotaKind],
        path: Path,
        early: EarlyPorts,
        link: WorkerLink | None = None,
    ) -> None:
        """`configuration` is that of the file `path`; `early` has the ports that listen already."""
        self._settings: Final = without_entries(configuration.settings)
        self._kinds: Final = list(kinds)
        self._early: Final = early
        self._link: Final = link
        self._rules: Final = configuration.rules
        self._store: Final = QuotaStore(configuration.quotas, self._configure, rules=self._rules)
        self._engines: Final = QuotaEngines(self._kinds, self._store.limits)
        self._authority: Final = Authority(self._settings.quotas.changes)
        self._protected_topics: Final = ProtectedTopics(self._settings.proxy_topics)
        self._reload: Final = Reload(path, configuration.settings, kinds, self._use_file, configuration.file)
        tls = self._settings.admin.tls
        self._admin_tls: Final = None if tls is None else server_tls(tls, ("admin", "tls"))
        self._service_manager: Final = ServiceManager()
        self._feed: QuotaClusterFeed | None = None
        """None until the listeners are built."""

    async def serve(self) -> None:
        """Build the rest, which needs the event loop; run until a signal; drain."""
        tasks = Tasks()
        stop = self._handle_signals(tasks)
        self._store.start()
        parts = self._parts(tasks)
        for work in chain(parts.work(), self._show(parts, stop), self._own_work(parts)):
            tasks.start(work)
        await stop.first.wait()
        parts.readiness.draining = True
        self._service_manager.stopping()
        if self._link is not None and self._link.orphaned:
            parts.listeners.stop_listening()
        else:
            await stop.delay(self._settings.limits.shutdown_delay_seconds)
        await parts.drain(self._settings.limits.drain_seconds)
        if self._link is not None:
            await self._link.close()
        await tasks.cancel()
        self._store.close()
        await parts.close()

    def _parts(self, tasks: Tasks) -> "_Parts":
        settings, time = self._settings, asyncio.get_running_loop().time
        listeners = Listeners(
            settings=settings,
            engines=self._engines,
            admin=self._admin_apis(time),
            early=self._early,
            tasks=tasks,
            balance=None if self._link is None else self._link.balance,
        )
        self._feed = listeners.feed
        topic = self._quota_topic(listeners, tasks)
        sharing = self._limit_sharing(listeners, tasks, time)
        usage = usage_reporter(settings, listeners)
        tls = [files for gateway in listeners.all for files in (gateway.tls, gateway.access.tls)]
        certificates = Certificates([*tls, self._admin_tls])
        readiness = Readiness(
            gateways=listeners.all,
            cluster_ids=lambda: listeners.cluster_ids,
            topic=topic,
            certificates=certificates,
            reload=self._reload,
            usage=usage,
            sharing=sharing,
        )
        return _Parts(
            listeners=listeners,
            topic=topic,
            sharing=sharing,
            usage=usage,
            certificates=certificates,
            readiness=readiness,
            admin_port=AdminServer(settings.admin, self._admin_tls) if self._link is None else None,
        )

    def _own_work(self, parts: "_Parts") -> Iterable[Work]:
        """The further work of the process: logs, the reload of its file, the notes to the service manager."""
        time = asyncio.get_running_loop().time
        clusters, readiness = parts.listeners.asking_clusters, parts.readiness
        yield DeletedTopics(self._store, clusters, time).run()
        yield ProtectedTopicIds(self._protected_topics, clusters).run()
        yield CallbackLog(lambda: self._store.limits.source, time).run()
        yield RejectionLog(self._engines, time).run()
        yield ThrottleLog(lambda: self._replication_state(parts.listeners), time).run()
        yield self._reload.watch()
        yield self._service_manager.follow(readiness.problems, readiness.warnings)
        yield self._forget_idle()

    def _show(self, parts: "_Parts", stop: StopRequests) -> Iterable[Work]:
        """Show the state of the process at the admin port, or to the supervisor, which has that port."""
        replication = partial(self._replication_state, parts.listeners)
        sources = AdminSources(
            settings=self._settings.admin,
            engines=self._engines,
            listeners=parts.listeners,
            buckets=self._buckets,
            table=QuotaTable(self._buckets, asyncio.get_running_loop().time, replication),
            replication=replication,
            topic=parts.topic,
            usage=parts.usage,
            sharing=parts.sharing,
            certificates=parts.certificates,
            loop_lag=parts.loop_lag,
            readiness=parts.readiness,
            console=self._console(parts.listeners, parts.sharing),
            reload=self._reload,
        )
        if self._link is not None:
            yield self._link.run(stop.request)
            yield self._link.serve(sources)
        if parts.admin_port is not None:
            yield parts.admin_port.serve(sources, lambda: not parts.readiness.problems())
            yield sources.table.run()

    def _handle_signals(self, tasks: Tasks) -> StopRequests:
        """Reload on SIGHUP; return what SIGTERM and SIGINT request. SIGUSR2 is for supervisors."""
        loop = asyncio.get_running_loop()
        stop = StopRequests()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.request)
        loop.add_signal_handler(signal.SIGHUP, lambda: tasks.start(self._reload_by_signal()))
        if self._link is None:
            loop.add_signal_handler(
                signal.SIGUSR2, log.warning, "SIGUSR2 replaces workers, and this process has none: restart it"
            )
        return stop

    async def _reload_by_signal(self) -> None:
        self._service_manager.reloading()
        await self._reload.reload("SIGHUP")
        self._service_manager.reloaded()

    # Quotas

    def _configure(self, limits: Limits) -> None:
        self._engines.configure(limits, asyncio.get_running_loop().time())
        if self._feed is not None:
            self._feed.update_needs()

    async def _use_file(self, configuration: Configuration) -> None:
        self._authority.settings = configuration.settings.quotas.changes
        await self._store.use_file(configuration.quotas)

    def _quota_topic(self, listeners: Listeners, tasks: Tasks) -> "QuotaTopic | None":
        """The topic that keeps the quotas set with Kafka's tools; None if none is configured."""
        store = self._settings.quotas.store
        if store == "none":
            return None
        # Imported here, as the other topic below: aiokafka takes a tenth of a start to import.
        from proxy.store.quota_topic import QuotaTopic

        topic = QuotaTopic(listeners.cluster_access, store.topic, self._store, tasks)
        self._store.log = topic
        return topic

    def _limit_sharing(
        self, listeners: Listeners, tasks: Tasks, time: Callable[[], float]
    ) -> LimitSharing | None:
        """How this process shares limits with others; None if it does not."""
        shares, link = self._settings.shares, self._link
        if shares is None:
            if link is None:
                return None
            return LimitSharing(f"worker {link.number}", self._engines, link.shares, time)
        from proxy.store.sharing.shares_topic import SharesTopic

        topic = SharesTopic(listeners.cluster_access, shares.topic, tasks, self._settings.cluster)
        instance = shares.instance
        if instance and link is not None:
            instance += f"-{link.number}"
        return LimitSharing(instance or f"{gethostname()}-{getpid()}", self._engines, topic, time)

    def _mutations(self, time: Callable[[], float]) -> ControllerMutations:
        quota = self._engines.shared(controller_mutation.KIND)
        assert isinstance(quota, ControllerMutation)
        return ControllerMutations(quota, time)

    def _admin_apis(self, time: Callable[[], float]) -> AdminApis:
        mutations = self._mutations(time)
        client_quotas = ClientQuotas(self._store, [key for kind in self._kinds for key in kind.keys])
        store = ConfigsStore(self._store)
        return AdminApis(
            client_quotas=client_quotas,
            describing=DescribeConfigs(store, self._rules),
            altering=AlterConfigs(store, self._rules),
            creations=TopicCreations(store, self._rules, mutations),
            mutations=mutations,
            authority=self._authority,
            protected=self._protected_topics,
        )

    def _console(self, listeners: Listeners, sharing: LimitSharing | None) -> Console:
        return Console(
            store=self._store,
            keys=[key for kind in self._kinds for key in kind.keys],
            rules=self._rules,
            clusters=listeners.asking_clusters,
            overview=lambda: overview(listeners, sharing),
            list_turns=listeners.list_turns,
            sharing=sharing,
            identifies_users=any(each.principal is not None for each in self._settings.client_listeners),
        )

    async def _forget_idle(self) -> None:
        while True:
            await asyncio.sleep(FORGET_EVERY_SECONDS)
            await forget_idle(self._engines)

    # What the admin port and the log show

    def _replication_state(self, listeners: Listeners) -> ReplicationState | None:
        """The state of the replication quotas; None without a replication listener."""
        for quota in self._engines.of_kind(replication.KIND):
            if listeners.replication and isinstance(quota, Replication):
                return quota.shared
        return None

    def _buckets(self) -> Iterator[tuple[int, BucketState]]:
        """The active buckets by their brokers' node ids. Each state is taken when it is asked for: a reader
        may let the event loop run in between.
        """
        time = asyncio.get_running_loop().time
        for node_id, quota in self._engines.active():
            for bucket in quota.live():
                yield node_id, bucket.state(time())
