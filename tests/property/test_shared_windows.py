"""Processes that share a limit with Kafka's window: together, they are never freer than one broker with the
whole limit.

A window admits ten seconds' worth at once, natively, too. So five seconds may have more than twice the limit,
and the comparison is with one process, whose rules are Kafka's.
"""

from random import Random
from statistics import mean
from typing import Final

import pytest

from proxy.quota.measure.rate_rule import RateRule
from tests.support.sharing import simulation as simulation_module
from tests.support.sharing.simulation import STEP, Connection, Process, Simulation

SIZE: Final = 20e3
WINDOW: Final = RateRule().window.total_seconds
FIVE: Final = 5.0
IDLE: Final = WINDOW + 2.0
"""For how long no client has come at first."""
LONGEST: Final = 60.0
MORE: Final = 1.05
"""How much more than one broker all may admit: they know of each other's uses after 0.4 s."""
EVENTS: Final = ("come", "come", "go", "go", "start", "kill", "nothing")


@pytest.fixture(autouse=True)
def kafkas_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation_module, "RULE", RateRule())


def most(simulation: Simulation, seconds: float, since: float = 0.0) -> float:
    """The most that was admitted in so many seconds, as a part of the limit."""
    served = sorted(
        (at, value) for process in simulation.processes for at, value, _ in process.served if at >= since
    )
    found = together = 0.0
    end = 0
    for at, value in served:
        while end < len(served) and served[end][0] < at + seconds - STEP / 2:
            together += served[end][1]
            end += 1
        found = max(found, together)
        together -= value
    return found / (seconds * simulation.limit)


def idle(count: int, seed: int = 0) -> tuple[Simulation, list[Process]]:
    """Processes that have been live for longer than the window."""
    simulation = Simulation(seed)
    processes = [simulation.start(f"p{number}") for number in range(count)]
    simulation.run(IDLE)
    return simulation, processes


def one_broker(connections: int, seconds: float = LONGEST) -> Simulation:
    """One broker whose clients send as much as they may, after they have been idle."""
    simulation, (process,) = idle(1)
    process.connect(connections, SIZE, simulation.now)
    simulation.run(seconds)
    return simulation


@pytest.fixture(scope="module")
def native() -> dict[float, float]:
    """By seconds, the most that one broker admits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation_module, "RULE", RateRule())
        simulation = one_broker(6)
    return {seconds: most(simulation, seconds) for seconds in (FIVE, WINDOW)}


def check(simulation: Simulation, native: dict[float, float]) -> None:
    for seconds, of_one in native.items():
        assert most(simulation, seconds) <= MORE * of_one, seconds


def test_one_broker_admits_a_window_s_worth_at_once(native: dict[float, float]) -> None:
    assert native[FIVE] > 2.0
    assert 1.0 < native[WINDOW] < 1.15


@pytest.mark.parametrize("connections", [(3, 3), (6, 0), (4, 1, 1), (1, 1, 1, 1)])
def test_clients_that_were_idle_have_one_window_s_worth_together(
    connections: tuple[int, ...], native: dict[float, float]
) -> None:
    of_one = mean(one_broker(sum(connections)).rates(IDLE))
    for seed in range(2):
        simulation, processes = idle(len(connections), seed)
        for process, count in zip(processes, connections, strict=True):
            process.connect(count, SIZE, simulation.now)
        simulation.run(LONGEST)
        check(simulation, native)
        assert mean(simulation.rates(IDLE)) >= 0.92 * of_one, seed


@pytest.mark.parametrize("connections", [(3, 3), (5, 1), (2, 2, 2)])
def test_steady_clients_have_no_more_than_with_one_broker(connections: tuple[int, ...]) -> None:
    """After the window's worth that clients have at first."""
    of_one = one_broker(sum(connections), 4 * WINDOW + LONGEST)
    native = {seconds: most(of_one, seconds, IDLE + 4 * WINDOW) for seconds in (FIVE, WINDOW)}
    for seed in range(3):
        simulation, processes = idle(len(connections), seed)
        for process, count in zip(processes, connections, strict=True):
            process.connect(count, SIZE, simulation.now)
        simulation.run(4 * WINDOW + LONGEST)
        for seconds, admitted in native.items():
            assert most(simulation, seconds, IDLE + 4 * WINDOW) <= MORE * admitted, (seed, seconds)


@pytest.mark.parametrize("count", [2, 3])
def test_clients_that_come_to_one_more_process_get_no_window_s_worth_there(
    count: int, native: dict[float, float]
) -> None:
    for seed in range(3):
        simulation, processes = idle(count, seed)
        processes[0].connect(2, SIZE, simulation.now)
        simulation.run(30.0)
        since = simulation.now
        processes[1].connect(2, SIZE, simulation.now)
        simulation.run(4 * WINDOW)
        assert most(simulation, WINDOW, since - WINDOW) <= native[WINDOW], seed
        assert mean(simulation.rates(since)) >= 0.98 * simulation.limit, seed


@pytest.mark.parametrize("used", [0.5, 2.0])
@pytest.mark.parametrize("gap", [0.0, 1.0, 4.0, 8.0])
def test_a_burst_at_one_process_is_not_repeated_at_another(
    used: float, gap: float, native: dict[float, float]
) -> None:
    """Also if the limit has become cold meanwhile, as it does after three seconds."""
    for seed in range(3):
        simulation, (a, b) = idle(2, seed)
        a.connect(2, SIZE, simulation.now)
        simulation.run(used)
        a.connections = []
        simulation.run(gap)
        b.connect(2, SIZE, simulation.now)
        simulation.run(2 * WINDOW)
        check(simulation, native)


@pytest.mark.parametrize("gap", [0.0, 1.5, 5.0])
def test_a_client_that_moves_takes_its_use_along(gap: float, native: dict[float, float]) -> None:
    for seed in range(3):
        simulation, (a, b, _) = idle(3, seed)
        a.connect(2, SIZE, simulation.now)
        simulation.run(30.0)
        since = simulation.now
        a.connections = []
        simulation.run(gap)
        b.connect(2, SIZE, simulation.now)
        simulation.run(20.0)
        check(simulation, native)
        assert most(simulation, WINDOW, since - WINDOW) <= native[WINDOW], seed


def test_a_process_that_starts_brings_no_window_s_worth(native: dict[float, float]) -> None:
    for seed in range(3):
        simulation, processes = idle(2, seed)
        for process in processes:
            process.connect(2, SIZE, simulation.now)
        simulation.run(30.0)
        simulation.start("new").connect(2, SIZE, simulation.now)
        simulation.run(3 * WINDOW)
        check(simulation, native)


@pytest.mark.parametrize("away", [2.0, 20.0])
def test_without_the_log_the_limit_gets_through(away: float, native: dict[float, float]) -> None:
    """The log goes away when the clients have just had their window's worth, or later. One broker admits 0.94
    of the limit then: a window begins when the last one has been paid.
    """
    for seed in range(2):
        simulation, processes = idle(2, seed)
        for process in processes:
            process.connect(2, SIZE, simulation.now)
        simulation.run(away)
        simulation.log.away = True
        simulation.run(WINDOW)
        since = simulation.now
        simulation.run(10 * WINDOW)
        assert 0.93 <= mean(simulation.rates(since)) / simulation.limit <= 1.05, seed
        check(simulation, native)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_all_are_never_freer_than_one_broker(seed: int, native: dict[float, float]) -> None:
    """Clients come and go, processes start and are killed, at random."""
    random = Random(seed)
    simulation, living = idle(random.choice((2, 3, 5)), seed)
    for _ in range(12):
        process = random.choice(living)
        event = random.choice(EVENTS)
        if event == "come":
            connected: list[Connection] = process.connections
            process.connect(random.randint(1, 3) if len(connected) < 3 else 0, SIZE, simulation.now)
        elif event == "go":
            process.connections = []
        elif event == "start":
            living.append(simulation.start(f"n{len(simulation.processes)}"))
        elif event == "kill" and len(living) > 1:
            living.remove(process)
            process.running = False
        simulation.run(random.uniform(0.2, 6.0))
    check(simulation, native)
