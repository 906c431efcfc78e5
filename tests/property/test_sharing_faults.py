"""Processes that share limits, under generated faults, and while processes and clients come and go."""

from statistics import mean, pstdev

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.quota.sharing.shared_bucket import CREDIT_SECONDS, SETTLE_SECONDS
from proxy.quota.sharing.waterfill import RESERVE
from tests.support.sharing.simulation import Simulation

SIZE = 20e3
SMALL = 10e3
"""The first request of a connection is admitted at once, so large ones of many connections are a burst."""
MOST = 1.05
"""The most in any five seconds, as a part of what the limit allows."""
EXCESS = CREDIT_SECONDS / SETTLE_SECONDS
"""How far the parts may be above the limit, while credit of the last seconds is used."""
ENTITIES = 2
EVENTS = (
    "kill",
    "stop",
    "continue",
    "start",
    "log away",
    "log back",
    "clock jumps",
    "move",
    "more",
    "nothing",
)
COMINGS = ("start", "start", "connect", "disconnect", "kill", "stop")


@settings(max_examples=40)
@example(0, 0.04, 0.0, [("kill", 0, 1.0), ("stop", 0, 3.0), ("continue", 0, 1.0)])
@given(
    st.integers(0, 2**16),
    st.sampled_from((0.04, 0.15, 0.4)),
    st.sampled_from((0.0, 0.1, 0.5)),
    st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 9), st.floats(0.1, 4.0)), max_size=15),
)
def test_all_parts_together_stay_within_the_limit(
    seed: int, delay: float, loss: float, events: list[tuple[str, int, float]]
) -> None:
    """Also with lost and repeated reports, wrong clocks, and whatever happens to processes and the log."""
    simulation = Simulation(seed)
    log = simulation.log
    log.delay, log.loss, log.twice = (0.005, delay), loss, loss
    for name, skew in (("a", 0.0), ("b", 3600.0), ("c", -3600.0)):
        process = simulation.start(name, skew)
        for entity in range(ENTITIES):
            process.connect(2, SIZE, 0.0, entity)
    worst = 0.0

    def check(now: float) -> None:
        nonlocal worst
        running = [process for process in simulation.processes if process.running and not process.stopped]
        # A reserve for each process that is not known to the others, or has stalled.
        reserves = RESERVE * len(running)
        for entity in range(ENTITIES):
            together = sum(process.part(entity) for process in running)
            worst = max(worst, together - reserves)

    for event, which, seconds in events:
        _happen(simulation, event, which)
        simulation.run(seconds, check)
    assert worst <= 1.0 + EXCESS + 1e-9


@settings(max_examples=20)
@given(
    st.integers(0, 2**16),
    st.sampled_from((2, 3, 12)),
    st.lists(st.tuples(st.sampled_from(COMINGS), st.integers(0, 99), st.floats(0.1, 2.0)), max_size=20),
)
def test_no_five_seconds_exceed_the_limit_while_processes_and_clients_come_and_go(
    seed: int, count: int, events: list[tuple[str, int, float]]
) -> None:
    """Four connections stay at one process, so the limit is in use all the time."""
    simulation = Simulation(seed)
    stays, *others = [simulation.start(f"p{number}") for number in range(count)]
    simulation.run(5.0)
    stays.connect(4, SMALL, simulation.now)
    simulation.run(5.0)
    since = simulation.now
    for event, which, seconds in events:
        others = [process for process in others if process.running]
        process = others[which % len(others)] if others else stays
        if event == "start":
            others.append(simulation.start(f"n{len(simulation.processes)}"))
            others[-1].connect(1 + which % 2, SMALL, simulation.now)
        elif event == "connect" and len(process.connections) < 5:
            process.connect(1, SMALL, simulation.now, waits=True)
        elif event == "disconnect" and process is not stays:
            process.connections = []
        elif event in ("kill", "stop") and process is not stays:
            process.running = False
            left = process.sharing.report([], simulation.now, leaving=True)
            if event == "stop" and left is not None:
                simulation.log.send(left, simulation.now)
        simulation.run(seconds)
    simulation.run(5.0)
    assert simulation.most(since) <= MOST


@settings(max_examples=15)
@given(
    st.integers(0, 2**16),
    st.sampled_from((0.04, 0.15)),
    st.sampled_from((0.0, 0.05)),
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=12),
)
def test_any_number_of_processes_holds_each_limit(
    seed: int, delay: float, loss: float, connections: list[tuple[int, int]]
) -> None:
    """Never more, never less, fair and smooth, for each of two entities."""
    simulation = Simulation(seed)
    simulation.log.delay, simulation.log.loss = (0.005, delay), loss
    skews = [simulation.log.random.uniform(-3600.0, 3600.0) for _ in connections]
    processes = [simulation.start(f"p{number}", skew) for number, skew in enumerate(skews)]
    simulation.run(5.0)
    for process, counts in zip(processes, connections, strict=True):
        for entity, count in enumerate(counts):
            process.connect(count, SIZE, simulation.now, entity)
    simulation.run(4.0)
    since = simulation.now
    simulation.run(15.0)
    for entity in range(ENTITIES):
        of_entity = [each[entity] for each in connections]
        if not any(of_entity):
            continue
        rates = simulation.rates(since, entity=entity)
        # A lost report delays a part that grows.
        least = 0.95 if loss else 0.98
        assert least <= mean(rates) / simulation.limit <= 1.02
        assert pstdev(rates) / mean(rates) <= 0.15
        assert simulation.most(since, entity) <= MOST
        for process, count in zip(processes, of_entity, strict=True):
            rate = mean(simulation.rates(since, only=process, entity=entity))
            assert rate == pytest.approx(simulation.limit * count / sum(of_entity), rel=0.15, abs=SIZE)


def _happen(simulation: Simulation, event: str, which: int) -> None:
    living = [process for process in simulation.processes if process.running]
    process = living[which % len(living)]
    if event == "kill" and len(living) > 1:
        process.running = False
    elif event == "stop":
        process.stopped = True
    elif event == "continue":
        process.resume(simulation.now)
    elif event == "start" and len(living) < 6:
        simulation.start(f"n{len(simulation.processes)}").connect(which % 4, SIZE, simulation.now)
    elif event == "log away":
        simulation.log.away = True
    elif event == "log back":
        simulation.log.away = False
    elif event == "clock jumps":
        simulation.log.clock_ms = (which - 5) * 1_800_000
    elif event == "move":
        process.connections = []
    elif event == "more":
        process.connect(which, SIZE, simulation.now, which % ENTITIES)
