"""Supervisor: starts the workers, replaces those that end, and serves the admin port for all of them."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from proxy.config.settings import ConnectionLimits, Settings
from proxy.security.tls import server_tls
from proxy.server.admin_port.libraries import import_http_server
from proxy.server.listener.ports.broker_ports import listening
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.listener.served import until_served
from proxy.server.system.garbage_collection import gc_paused
from proxy.server.system.service_manager import ServiceManager
from proxy.server.workers.channel import Record
from proxy.server.workers.connection_counts import ConnectionCounts
from proxy.server.workers.fleet import Fleet
from proxy.server.workers.ports import KeptPorts
from proxy.server.workers.process import END_DELAY, WorkerProcess
from proxy.server.workers.rolling_restart import RollingRestart
from proxy.server.workers.starts import FromSupervisor, Started, fork_workers, spawn
from proxy.server.workers.supervisor_shares_log import SupervisorSharesLog
from proxy.tasks import Tasks, every
from proxy.upstream.addresses import join_address

if TYPE_CHECKING:
    from proxy.server.workers.site import WorkersSite

log = logging.getLogger(__name__)
LEAST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0
"""A worker that ends at once is started again after a pause that doubles each time."""
STEADY_SECONDS: Final = 10.0
"""A worker that has run for this long is started again after LEAST_PAUSE."""
STATUS_SECONDS: Final = 0.5
"""How often the supervisor asks the workers for their readiness: five times as often while one is not ready.
"""
PORTS_SECONDS: Final = 0.1
"""How often the supervisor looks for listeners that no worker serves."""
SITE_WAITS_SECONDS: Final = 0.5
"""The longest time for which the admin port waits until clients are served: without a broker they are not."""
COUNT_SECONDS: Final = 10.0
"""How often the supervisor takes the workers' metrics: a killed worker loses what it counted since."""
KILL_SECONDS: Final = 7.0
"""After limits.shutdown_delay_seconds and limits.drain_seconds, a worker has this long to deliver its usage
events and end."""


def supervise(
    settings: Settings,
    path: Path,
    log_level: str,
    passed: EarlyPorts,
    prepare: Callable[[], None],
    serve_worker: Callable[[Path, str, FromSupervisor], int],
) -> int:
    """Run the workers until SIGTERM or SIGINT; return the exit code. Raises SettingsError and PortInUse.

    The first workers are forks of this process. `prepare` imports what they need; `serve_worker` serves in
    each of them, and its exit code is returned there.
    """
    passed.check_passed(settings)
    ports = KeptPorts(settings, passed)
    ports.open()
    admin = listening(settings.admin.bind, settings.admin.port, "admin.port: ")
    counts = ConnectionCounts(settings.worker_count)
    started = fork_workers(settings, counts, prepare)
    if isinstance(started, FromSupervisor):
        admin.close()
        ports.close()
        passed.close_passed()
        return serve_worker(path, log_level, started)
    supervisor = Supervisor(
        settings=settings,
        path=path,
        log_level=log_level,
        ports=ports,
        admin=admin,
        counts=counts,
        started=started,
    )
    uvloop.run(supervisor.serve())
    return 0


class Supervisor:
    """The parent of all workers."""

    def __init__(
        self,
        *,
        settings: Settings,
        path: Path,
        log_level: str,
        ports: KeptPorts,
        admin: socket.socket,
        counts: ConnectionCounts,
        started: Sequence[Started],
    ) -> None:
        """`admin` listens at the admin port; `started` are the workers that run already."""
        self._settings: Final = settings
        self._path: Final = path
        self._log_level: Final = log_level
        self._ports: Final = ports
        self._fleet: Final = Fleet(settings.worker_count)
        self._shares: Final = SupervisorSharesLog()
        self._counts: Final = counts
        self._started: Final = {each.number: each for each in started}
        """The processes that have started, and are not followed yet."""
        self._tasks: Final = Tasks()
        self._stop: Final = asyncio.Event()
        self._following: Final[dict[WorkerProcess, asyncio.Task[None]]] = {}
        """By process: the task that takes its messages until it has ended."""
        self._rolling: Final = RollingRestart(self._fleet, self._start, _longest_end(settings.limits))
        self._service_manager: Final = ServiceManager()
        self._site: WorkersSite | None = None
        """None until it is imported."""
        self._admin: Final = admin
        tls = settings.admin.tls
        self._admin_tls: Final = None if tls is None else server_tls(tls, ("admin", "tls"))
        scheme = "http" if tls is None else "https"
        log.info("admin port: %s://%s", scheme, join_address(settings.admin.bind, admin.getsockname()[1]))

    async def serve(self) -> None:
        """Run until a signal, and until all workers have ended then."""
        fleet, tasks, stop = self._fleet, self._tasks, self._stop
        self._handle_signals()
        keeping = [tasks.start(self._keep(number)) for number in range(1, fleet.count + 1)]
        tasks.start(self._serve_admin())
        tasks.start(self._ask())
        tasks.start(self._review_ports())
        tasks.start(self._service_manager.follow(fleet.problems, fleet.warnings))
        await stop.wait()
        log.info("stopping %d workers", len(fleet.all))
        fleet.stopping = True
        self._service_manager.stopping()
        # The workers listen until they have drained.
        self._ports.close()
        self._signal_all(signal.SIGTERM)
        ending = [*keeping, *self._following.values()]
        _, late = await asyncio.wait(ending, timeout=_longest_end(self._settings.limits))
        if late:
            log.warning("killing %d workers that did not end", len(fleet.all))
            self._signal_all(signal.SIGKILL)
            await asyncio.wait(late)
        await tasks.cancel()
        self._admin.close()

    def _handle_signals(self) -> None:
        loop, stop = asyncio.get_running_loop(), self._stop

        def end() -> None:
            if stop.is_set():
                self._signal_all(END_DELAY)
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        loop.add_signal_handler(signal.SIGUSR2, lambda: self._tasks.start(self._rolling.run()))

    def _reload(self) -> None:
        self._service_manager.reloading()
        # Others read the file at their start, and SIGHUP would end them.
        for worker in self._fleet.each(lambda worker: worker.replied):
            worker.signal(signal.SIGHUP)
        self._service_manager.reloaded()

    def _signal_all(self, number: signal.Signals) -> None:
        for worker in self._fleet.each(lambda worker: True):
            worker.signal(number)

    # Workers

    async def _keep(self, number: int) -> None:
        """Have a worker of this number run, until SIGTERM."""
        fleet, stop, time = self._fleet, self._stop, asyncio.get_running_loop().time
        pause = LEAST_PAUSE
        while not stop.is_set():
            began = time()
            how = await self._run(number)
            if stop.is_set():
                return
            if time() - began >= STEADY_SECONDS:
                pause = LEAST_PAUSE
            fleet.ended[number] = f"{how}; it starts again in {pause:.1f} s"
            log.warning("worker %d %s; it starts again in %.1f s", number, how, pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stop.wait()
            fleet.restarts += 1
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _run(self, number: int) -> str:
        """Run a worker, and those that replace it, until the last one ends; return how it ended."""
        fleet = self._fleet
        if number not in fleet.running:
            try:
                worker = await self._start(number)
            except OSError as error:
                return f"cannot be started: {error}"
            replaced = fleet.take_over(worker)
            if replaced is not None:
                # A successor has become the worker of this number meanwhile.
                replaced.signal(signal.SIGTERM)
        while (running := fleet.running.get(number)) is not None:
            worker = running
            await asyncio.wait([self._following[worker]])
        return worker.how_it_ended

    async def _start(self, number: int) -> WorkerProcess:
        """Start a process for a worker, unless one has started already. Raises OSError."""
        started = self._started.pop(number, None)
        if started is None:
            started = await spawn(number, self._path, self._log_level, self._counts)
        worker = await WorkerProcess.of(started, self._ports)
        log.info("worker %d: process %d", number, worker.pid)
        for record in self._shares.kept():
            worker.channel.send(record)
        self._fleet.others.add(worker)
        self._following[worker] = self._tasks.start(self._follow(worker))
        if self._stop.is_set():
            worker.signal(signal.SIGTERM)
        return worker

    async def _follow(self, worker: WorkerProcess) -> None:
        """Take the messages of a process until it has ended."""
        last: list[bytes] = []
        code = await worker.follow(self._append, last.append)
        worker.how_it_ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._counts.give_back(worker.place)
        self._fleet.ended_process(worker, worker.how_it_ended)
        del self._following[worker]
        if self._site is not None:
            self._site.ended(worker.pid, last[-1] if last else b"")

    def _append(self, value: bytes) -> None:
        """Append a report to the log, and send it to all workers."""
        record: Record = self._shares.append(value)
        for worker in self._fleet.all:
            if not worker.channel.full:
                worker.channel.send(record)

    async def _review_ports(self) -> None:
        time = asyncio.get_running_loop().time
        await every(PORTS_SECONDS, lambda: self._ports.review(time()))

    # The admin port

    async def _ask(self) -> None:
        time = asyncio.get_running_loop().time
        counted_at = time()
        while True:
            await self._fleet.ask_how_they_are()
            if self._site is not None and time() - counted_at >= COUNT_SECONDS:
                counted_at = time()
                await self._site.count()
            await asyncio.sleep(STATUS_SECONDS if not self._fleet.not_serving() else STATUS_SECONDS / 5)

    async def _serve_admin(self) -> None:
        """Serve the admin port once a worker serves clients, or after SITE_WAITS_SECONDS: the import of its
        libraries would delay the workers.
        """
        await until_served(lambda: not self._fleet.problems(), SITE_WAITS_SECONDS)
        site = await asyncio.to_thread(_imported)
        self._site = site(self._settings.admin, self._fleet)
        await self._site.serve(self._admin, self._admin_tls)


def _longest_end(limits: ConnectionLimits) -> float:
    """Seconds after which a worker that still runs after SIGTERM is killed."""
    return limits.shutdown_delay_seconds + limits.drain_seconds + KILL_SECONDS


def _imported() -> "type[WorkersSite]":
    with gc_paused():
        import_http_server()
        from proxy.server.workers.site import WorkersSite

    return WorkersSite
