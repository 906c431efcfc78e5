"""restarts: under load, the proxy is ended by SIGTERM and by SIGKILL in turn, and started again.

As with a service manager, the next process starts as soon as the last one has ended. `restarts` binds its
ports anew; `restarts-passed` gets them from the program that starts it, as from systemd's socket activation.
`handovers` starts a successor at the same ports first (`reuse_port`), and `handovers-workers` does so with
two workers each. `workers` runs a supervisor with two workers, and does in turn what FAULTS lists.
"""

import json
import os
import random
import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bench.soak.delivered import Group, check_read, check_stored
from bench.soak.scenario import Outcome, Run, Scenario
from bench.soak.stalls import longest_gap, percentiles
from bench.soak.writers import IN_TESTS, WRITERS, Writer, go_on, running
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import STOP_SECONDS, ProxyProcess
from tests.support.process.workers import running as is_running
from tests.support.process.workers import started
from tests.support.waiting import wait_until

RESTARTS: Final = 200
SHORT_RESTARTS: Final = 2
REPLACED: Final = "replaced 2 workers"
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


def hand_over(old: ProxyProcess, new: ProxyProcess, writers: list[Writer]) -> Restart:
    """Start the successor at the same ports, end the running proxy, and wait until every writer continues."""
    new.start().wait_ready()
    signalled = time.monotonic()
    old.stop()
    ended = time.monotonic()
    go_on(writers)
    return Restart("SIGTERM", signalled, ended, ended, time.monotonic())


def run(run: Run, *, passed: bool = False) -> Outcome:
    """Restart the proxy, and count lost and doubled messages. `passed`: whether its ports stay open."""
    process = ProxyProcess(run.folder / "restarts", run.kafka.bootstrap)
    if passed:
        process.hold_ports()
    with process as proxy:

        def next_restart(number: int, writers: list[Writer]) -> Restart:
            return restart(proxy, ("SIGTERM", "SIGKILL")[number % 2], writers)

        return _measure(run, [proxy], next_restart)


def run_handovers(run: Run, *, workers: int = 1) -> Outcome:
    """Replace the proxy by a successor at the same ports, and count lost and doubled messages. Each has this
    number of workers.
    """
    make = partial(ProxyProcess, upstream=run.kafka.bootstrap, settings={"workers": workers})
    first = make(run.folder / "first", listener={"reuse_port": True})
    same = {"bootstrap_port": first.bootstrap_port, "broker_port_base": first.broker_port(0)}
    second = make(run.folder / "second", listener={"reuse_port": True, **same})
    with first:

        def next_handover(number: int, writers: list[Writer]) -> Restart:
            old, new = ((first, second), (second, first))[number % 2]
            return hand_over(old, new, writers)

        try:
            return _measure(run, [first, second], next_handover)
        finally:
            second.kill()


def kill_worker(proxy: ProxyProcess, writers: list[Writer]) -> Restart:
    """Kill the worker that runs for longest, and wait for its successor."""
    signalled = time.monotonic()
    os.kill(next(pid for pid in started(proxy) if is_running(pid)), signal.SIGKILL)
    go_on(writers)
    recovered = time.monotonic()
    _wait_for_all_workers(proxy)
    return Restart("SIGKILL of a worker", signalled, signalled, time.monotonic(), recovered)


def replace_workers(proxy: ProxyProcess, writers: list[Writer]) -> Restart:
    """Have the supervisor replace its workers, and wait until it has."""
    count = len(proxy.log_lines(REPLACED))
    signalled = time.monotonic()
    proxy.process.send_signal(signal.SIGUSR2)
    wait_until(lambda: len(proxy.log_lines(REPLACED)) > count, "new workers", 120)
    ended = time.monotonic()
    go_on(writers)
    return Restart("SIGUSR2", signalled, ended, ended, time.monotonic())


def restart_all(proxy: ProxyProcess, how: str, writers: list[Writer]) -> Restart:
    """Restart the supervisor with its workers. Those of a killed supervisor end by themselves."""
    found = restart(proxy, how, writers)
    _wait_for_all_workers(proxy)
    return found


def _wait_for_all_workers(proxy: ProxyProcess) -> None:
    def all_serve() -> bool:
        shown = json.loads(proxy.get("/readyz")[1])
        return shown["ready"] and not shown["warnings"]

    wait_until(all_serve, "both workers", 120)


FAULTS: Final = (
    lambda proxy, writers: restart_all(proxy, "SIGTERM", writers),
    kill_worker,
    replace_workers,
    lambda proxy, writers: restart_all(proxy, "SIGKILL", writers),
)


def run_workers(run: Run) -> Outcome:
    """End, kill and replace two workers and their supervisor, and count lost and doubled messages."""
    settings = {"workers": 2}
    with ProxyProcess(run.folder / "workers", run.kafka.bootstrap, settings=settings) as proxy:
        _wait_for_all_workers(proxy)

        def next_fault(number: int, writers: list[Writer]) -> Restart:
            return FAULTS[number % len(FAULTS)](proxy, writers)

        return _measure(run, [proxy], next_fault)


def _measure(
    run: Run, proxies: list[ProxyProcess], next_restart: Callable[[int, list[Writer]], Restart]
) -> Outcome:
    """Run the restarts under load, and check the delivery of all messages."""
    outcome = Outcome()
    bootstrap = proxies[0].bootstrap
    count = run.amount(RESTARTS, SHORT_RESTARTS)
    between = SHORT_BETWEEN_SECONDS if run.short else BETWEEN_SECONDS
    makers = IN_TESTS if run.short else WRITERS
    topics = [_new_topic(make) for make in makers]
    for topic in topics:
        make_topic(run.kafka, topic, PARTITIONS)
    restarts: list[Restart] = []
    writers = [make(run.kafka, bootstrap, topic) for make, topic in zip(makers, topics, strict=True)]
    with Group(bootstrap, writers[0].topic) as group:
        with running(writers):
            for number in range(count):
                time.sleep(random.uniform(*between))
                restarts.append(next_restart(number, writers))
        read = check_read(group, writers[0], outcome)
    complaints = [line for proxy in proxies for line in proxy.log_lines("Traceback|ERROR")]
    outcome.check(not complaints, f"the proxy's log has errors: {complaints[:1]}")
    signals = sorted({each.how for each in restarts}, reverse=True)
    outcome.figures = {
        "restarts": count,
        "delivered": {each.name: check_stored(run.kafka, each, outcome) for each in writers},
        "group": read,
        **{how: _times(how, restarts, writers) for how in signals},
    }
    if not run.short:
        longest = outcome.figures["SIGTERM"]["stall"]["librdkafka"]["max"]
        outcome.check(longest <= STALL_SECONDS, f"SIGTERM stalled acknowledgements for {longest} s")
    return outcome


def _new_topic(make: Any) -> str:
    """Return a name that no other run on the same Kafka has."""
    return f"soak-restarts-{make.name}-{uuid.uuid4().hex[:8]}"


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
AT_PASSED_SOCKETS: Final = Scenario(
    "restarts-passed", "the same at ports that a service manager holds", partial(run, passed=True)
)
OF_WORKERS: Final = Scenario(
    "workers", "200 restarts and replacements of two workers and their supervisor under load", run_workers
)
HANDOVERS: Final = Scenario(
    "handovers", "200 replacements by a successor at the same ports under load", run_handovers
)
HANDOVERS_OF_WORKERS: Final = Scenario(
    "handovers-workers",
    "the same with two workers and their supervisor",
    partial(run_handovers, workers=2),
)
