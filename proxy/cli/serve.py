"""`quota-proxy run`: the process that serves."""

import logging
import platform
import signal
import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import proxy
from proxy.cli.check import read_configuration
from proxy.config.client_entries import without_entries
from proxy.config.settings import Settings
from proxy.quota.kinds import load_kinds
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.listener.ports.passed_sockets import passed_sockets
from proxy.server.system.garbage_collection import gc_paused
from proxy.telemetry import log

if TYPE_CHECKING:
    from proxy.server.workers.starts import FromSupervisor

logger = logging.getLogger(__name__)


def serve_worker(path: Path, log_level: str, given: "FromSupervisor") -> int:
    """Serve as one of several workers; return the exit code. Raises QuotaProxyError."""
    _ignore_signals()
    number = given.number
    log.set_up(log_level, f"worker {number}")
    kinds = load_kinds()
    with gc_paused():
        configuration = read_configuration(path, kinds)
        log.set_up(log_level, f"worker {number}", configuration.settings.log.format)
        from proxy.server.app import build, run
        from proxy.server.workers.connection_counts import WorkerCount
        from proxy.server.workers.link import WorkerLink
        from proxy.server.workers.ports import WorkerPorts

    balance = WorkerCount(given.counts, given.place)
    link = WorkerLink(number, socket.socket(fileno=given.channel), balance)
    early = WorkerPorts(socket.socket(fileno=given.ports))
    process = build(configuration, kinds, path, early, link)
    del configuration
    return run(process)


def _ignore_signals() -> None:
    """Until the process handles these signals, they would end it. It finds a file that changes meanwhile.

    Only a supervisor handles SIGUSR2.
    """
    for number in (signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def _supervise(settings: Settings, path: Path, log_level: str, early: EarlyPorts) -> int:
    with gc_paused():
        from proxy.server.workers.supervisor import supervise

    _set_up_log(settings, path, log_level, "supervisor")
    return supervise(settings, path, log_level, early, partial(_import_for_workers, settings), serve_worker)


def _import_for_workers(settings: Settings) -> None:
    """Import what a worker would import before it serves."""
    with gc_paused():
        import proxy.server.app
        import proxy.server.workers.link

        if settings.quotas.store != "none":
            import proxy.store.quota_topic
        if settings.shares is not None:
            import proxy.store.sharing.shares_topic  # noqa: F401


def _set_up_log(settings: Settings, path: Path, log_level: str, process: str = "") -> None:
    log.set_up(log_level, process, settings.log.format)
    build_name = "compiled" if proxy.COMPILED else "interpreted"
    logger.info(
        "quota-proxy %s (%s, Python %s): configuration %s",
        *(proxy.__version__, build_name, platform.python_version(), path.absolute()),
    )


def serve(path: Path, log_level: str) -> int:
    """Serve until a signal; return the exit code. Raises QuotaProxyError."""
    _ignore_signals()
    kinds = load_kinds()
    with gc_paused():
        configuration = read_configuration(path, kinds)
        early = EarlyPorts(passed_sockets())
    settings = without_entries(configuration.settings)
    if settings.worker_count > 1:
        # Each worker reads the file.
        del configuration
        return _supervise(settings, path, log_level, early)
    early.open(settings)
    with gc_paused():
        # Imported when the ports listen: this takes as long as everything before it.
        from proxy.server.app import build, run
    _set_up_log(settings, path, log_level)
    process = build(configuration, kinds, path, early)
    # Only the store keeps the quotas of the file, so that a reload releases the previous ones.
    del configuration
    return run(process)
