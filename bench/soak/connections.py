"""connections: thousands of idle connections and a thousand busy ones, beside one neighbour."""

import time
from typing import Any, Final

from bench.soak.crowd import crowd
from bench.soak.process import growth, open_files, resident, settled
from bench.soak.scenario import Outcome, Run, Scenario
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import HOST, ProxyProcess

IDLE: Final = 8000
BUSY: Final = 1000
SECONDS: Final = 600
SHORT_IDLE: Final = 200
SHORT_BUSY: Final = 50
SHORT_SECONDS: Final = 1
EVERY_SECONDS: Final = 5.0
"""Between two requests of a busy connection: a thousand of them send 200 per second, which two cores can
serve.
"""
SHORT_EVERY_SECONDS: Final = 0.5
NEIGHBOUR_EVERY_SECONDS: Final = 0.01
"""Between two requests of the neighbour."""
ALONE_SECONDS: Final = 20
"""For how long the neighbour is measured alone, at most."""
GROWTH_BYTES: Final = 8 << 20
"""The limit for the growth of memory once the connections are open."""
TOPIC: Final = "soak-connections"
LONG_MS: Final = 3_600_000
"""No idle connection is closed before: neither by the proxy nor by the broker."""


def run(run: Run) -> Outcome:
    """Keep the connections open, and measure their memory and latency."""
    outcome = Outcome()
    idle = SHORT_IDLE if run.short else IDLE
    busy = SHORT_BUSY if run.short else BUSY
    make_topic(run.kafka, TOPIC)
    limits = {"max_connections": idle + busy + 100, "idle_seconds": LONG_MS / 1000}
    proxy = ProxyProcess(run.folder / "connections", run.kafka.bootstrap, settings={"limits": limits})
    with proxy:
        address = f"{HOST}:{proxy.broker_port(1)}"
        pid = proxy.process.pid
        with crowd(address, TOPIC, 1, NEIGHBOUR_EVERY_SECONDS) as alone:
            time.sleep(min(run.amount(ALONE_SECONDS, 1), ALONE_SECONDS))
        before, files = resident(pid), open_files(pid)
        with crowd(address, TOPIC, idle) as idlers:
            with_idle = resident(pid)
            with (
                crowd(address, TOPIC, busy, SHORT_EVERY_SECONDS if run.short else EVERY_SECONDS) as busy_ones,
                crowd(address, TOPIC, 1, NEIGHBOUR_EVERY_SECONDS) as neighbour,
            ):
                samples = _samples(pid, run.amount(SECONDS, SHORT_SECONDS))
        outcome.figures = {
            "idle": idle,
            "busy": busy,
            "kib_per_idle_connection": round((with_idle - before) / idle / 1024, 1),
            "kib_per_connection": round((samples[-1] - before) / (idle + busy) / 1024, 1),
            "resident_mib": {"before": before >> 20, "idle": with_idle >> 20, "all": samples[-1] >> 20},
            "growth_mib": round(growth(samples) / (1 << 20), 2),
            "busy_requests": busy_ones.said,
            "neighbour_alone": alone.said["latency"],
            "neighbour": neighbour.said["latency"],
        }
        for name, told in _all(idle=idlers.said, busy=busy_ones.said, neighbour=neighbour.said):
            outcome.check(not told["lost"], f"{told['lost']} {name} connections were lost")
        outcome.check(growth(samples) <= GROWTH_BYTES, f"memory grew by {growth(samples):.0f} bytes")
        left = settled(pid, files)
        outcome.check(not left, f"{left} descriptors are left")
    return outcome


def _all(**said: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(said.items())


def _samples(pid: int, seconds: int) -> list[int]:
    """Sample the resident memory for this number of seconds."""
    until = time.monotonic() + seconds
    samples = [resident(pid)]
    while time.monotonic() < until:
        time.sleep(0.5)
        samples.append(resident(pid))
    return samples


SCENARIO: Final = Scenario(
    "connections",
    "8,000 idle and 1,000 busy connections for ten minutes",
    run,
    properties={"connections.max.idle.ms": str(LONG_MS)},
)
