"""restarts: under load, the proxy is ended by SIGTERM and by SIGKILL in turn, and started again.

As with a supervisor, the next process starts as soon as the last one has ended.
"""

import random
import time
from dataclasses import dataclass
from typing import Any, Final

from bench.soak.delivered import Group, check_read, check_stored
from bench.soak.scenario import Outcome, Run, Scenario
from bench.soak.stalls import longest_gap, percentiles
from bench.soak.writers import IN_TESTS, WRITERS, Writer, go_on, running
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import STOP_SECONDS, ProxyProcess

RESTARTS: Final = 200
SHORT_RESTARTS: Final = 2
PARTITIONS: Final = 3
STALL_SECONDS: Final = 1.5
"""The longest time without an acknowledgement at a restart by SIGTERM."""
BETWEEN_SECONDS: Final = (10.5, 12.0)
"""Bounds of the random time between two restarts, so that they occur at any moment of the clients' work.

librdkafka resets its reconnect backoff only 10 s (reconnect.backoff.max.ms) after its last reconnect. With
restarts at shorter intervals, it would wait for the backoff of several restarts, which the scenario itself
causes.
"""
SHORT_BETWEEN_SECONDS: Final = (0.1, 1.0)
"""The bounds in a short run."""


@dataclass(frozen=True)
class Restart:
    """A restart; times are time.monotonic()'s."""

    how: str
    signalled: float
    ended: float
    ready: float
    recovered: float
    """When every writer had continued."""


def restart(proxy: ProxyProcess, how: str, writers: list[Writer]) -> Restart:
    """Restart the proxy, and wait until every writer continues."""
    signalled = time.monotonic()
    if how == "SIGTERM":
        proxy.stop()
    else:
        proxy.process.kill()
        proxy.process.wait(STOP_SECONDS)
    ended = time.monotonic()
    proxy.start().wait_ready()
    ready = time.monotonic()
    go_on(writers)
    return Restart(how, signalled, ended, ready, time.monotonic())


def run(run: Run) -> Outcome:
    """Restart the proxy, and count lost and doubled messages."""
    outcome = Outcome()
    count = run.amount(RESTARTS, SHORT_RESTARTS)
    between = SHORT_BETWEEN_SECONDS if run.short else BETWEEN_SECONDS
    makers = IN_TESTS if run.short else WRITERS
    for make in makers:
        make_topic(run.kafka, _topic(make), PARTITIONS)
    restarts: list[Restart] = []
    with ProxyProcess(run.folder / "restarts", run.kafka.bootstrap) as proxy:
        writers = [make(run.kafka, proxy.bootstrap, _topic(make)) for make in makers]
        with Group(proxy.bootstrap, writers[0].topic) as group:
            with running(writers):
                for number in range(count):
                    time.sleep(random.uniform(*between))
                    restarts.append(restart(proxy, ("SIGTERM", "SIGKILL")[number % 2], writers))
            read = check_read(group, writers[0], outcome)
        complaints = proxy.log_lines("Traceback|ERROR")
    outcome.check(not complaints, f"the proxy's log has errors: {complaints[:1]}")
    outcome.figures = {
        "restarts": count,
        "delivered": {each.name: check_stored(run.kafka, each, outcome) for each in writers},
        "group": read,
        **{how: _times(how, restarts, writers) for how in ("SIGTERM", "SIGKILL")},
    }
    if not run.short:
        longest = outcome.figures["SIGTERM"]["stall"]["librdkafka"]["max"]
        outcome.check(longest <= STALL_SECONDS, f"SIGTERM stalled acknowledgements for {longest} s")
    return outcome


def _topic(make: Any) -> str:
    return f"soak-restarts-{make.name}"


def _times(how: str, restarts: list[Restart], writers: list[Writer]) -> dict[str, Any]:
    """Return the seconds that each part of the restarts took."""
    of_these = [each for each in restarts if each.how == how]
    return {
        "shutdown": percentiles([each.ended - each.signalled for each in of_these]),
        "start": percentiles([each.ready - each.ended for each in of_these]),
        "stall": {
            writer.name: percentiles(
                [longest_gap(writer.done.times, each.signalled, each.recovered) for each in of_these]
            )
            for writer in writers
        },
    }


SCENARIO: Final = Scenario("restarts", "200 restarts by SIGTERM and SIGKILL under load", run)
