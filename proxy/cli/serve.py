"""`quota-proxy run`: the process that serves."""

import logging
import platform
import signal
import socket
from pathlib import Path
from typing import NamedTuple

import proxy
from proxy.cli.check import read_configuration
from proxy.config.settings import Settings
from proxy.quota.kinds import load_kinds
from proxy.server.garbage_collection import gc_paused
from proxy.server.listener.early_ports import EarlyPorts
from proxy.server.listener.passed_sockets import passed_sockets
from proxy.telemetry import log

logger = logging.getLogger(__name__)


class FromSupervisor(NamedTuple):
    """What a worker gets.

    number: counts the workers from 1.
    channel, ports: the descriptors of the sockets that are connected to the supervisor.
    counts, place: the descriptor of ConnectionCounts, and the worker's place there.
    """

    number: int
    channel: int
    ports: int
    counts: int
    place: int


def serve_worker(path: Path, log_level: str, given: FromSupervisor) -> int:
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
    from proxy.server.workers.supervisor import supervise

    _set_up_log(settings, path, log_level, "supervisor")
    return supervise(settings, path, log_level, early)


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
        if configuration.settings.worker_count > 1:
            return _supervise(configuration.settings, path, log_level, early)
        early.open(configuration.settings)
        # Imported when the ports listen: this takes as long as everything before it.
        from proxy.server.app import build, run
    _set_up_log(configuration.settings, path, log_level)
    process = build(configuration, kinds, path, early)
    # Only the store keeps the quotas of the file, so that a reload releases the previous ones.
    del configuration
    return run(process)
