"""`quota-proxy run`: the process that serves."""

import logging
import platform
import signal
from pathlib import Path

import proxy
from proxy.cli.check import read_configuration
from proxy.quota.kinds import load_kinds
from proxy.server.garbage_collection import gc_paused
from proxy.server.listener.early_ports import EarlyPorts
from proxy.server.listener.passed_sockets import passed_sockets
from proxy.telemetry import log

logger = logging.getLogger(__name__)


def serve(path: Path, log_level: str) -> int:
    """Serve until a signal; return the exit code. Raises QuotaProxyError."""
    # Until the process handles SIGHUP, it would end it. The process finds a file that changes meanwhile.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    kinds = load_kinds()
    with gc_paused():
        configuration = read_configuration(path, kinds)
        early = EarlyPorts(passed_sockets())
        early.open(configuration.settings)
        # Imported when the ports listen: this takes as long as everything before it.
        from proxy.server.app import build, run
    log.set_up(log_level)
    build_name = "compiled" if proxy.COMPILED else "interpreted"
    logger.info(
        "quota-proxy %s (%s, Python %s): configuration %s",
        *(proxy.__version__, build_name, platform.python_version(), path.absolute()),
    )
    process = build(configuration, kinds, path, early)
    # Only the store keeps the quotas of the file, so that a reload releases the previous ones.
    del configuration
    return run(process)
