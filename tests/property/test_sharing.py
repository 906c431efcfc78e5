"""Processes that share a limit: what they let through in quiet times, and while one thing happens to them."""

from statistics import mean, pstdev

import pytest

from tests.support.sharing.simulation import STEP, Process, Simulation

SIZE = 20e3
MOST = 1.05
"""The most in any five seconds, as a part of what the limit allows."""


def three(seed: int = 0) -> tuple[Simulation, list[Process]]:
    simulation = Simulation(seed)
    processes = [simulation.start(name) for name in "abc"]
    simulation.run(5.0)
    return simulation, processes


@pytest.mark.parametrize("connections", [(4, 4, 4), (4, 0, 0), (9, 1, 0), (1, 1, 1), (1, 10, 30)])
def test_the_whole_limit_gets_through_evenly_and_fairly(connections: tuple[int, ...]) -> None:
    simulation, processes = three()
    for process, count in zip(processes, connections, strict=True):
        process.connect(count, SIZE, simulation.now)
    simulation.run(3.0)
    since = simulation.now
    simulation.run(30.0)

    rates = simulation.rates(since)
    assert 0.98 <= mean(rates) / simulation.limit <= 1.01
    assert pstdev(rates) / mean(rates) <= 0.15
    assert simulation.most(since) <= MOST
    for process, count in zip(processes, connections, strict=True):
        rate = mean(simulation.rates(since, only=process))
        assert rate == pytest.approx(simulation.limit * count / sum(connections), rel=0.05)


def test_a_steady_client_within_its_fair_part_is_not_throttled() -> None:
    simulation, (a, b, _) = three()
    a.connect(4, SIZE, simulation.now)
    b.steady = 0.15 * simulation.limit
    simulation.run(3.0)
    since = simulation.now
    simulation.run(20.0)
    assert mean(simulation.rates(since, only=b)) == pytest.approx(b.steady, rel=0.02)
    assert mean(simulation.rates(since)) == pytest.approx(simulation.limit, rel=0.02)


@pytest.mark.parametrize("count", [3, 8])
@pytest.mark.parametrize(
    ("connected", "paused", "everywhere"),
    [
        (0.05, 0.0, False),  # each request on a new connection, to the next process
        (0.2, 0.0, True),  # new connections to all processes all the time
        (1.0, 0.0, False),  # to the process that has been idle
        (1.0, 2.0, True),  # a burst on all processes at the same moment
    ],
)
def test_a_client_that_connects_anew_gets_no_more(
    count: int, connected: float, paused: float, everywhere: bool
) -> None:
    simulation = Simulation(count)
    processes = [simulation.start(name) for name in "abcdefgh"[:count]]
    simulation.run(5.0)
    since = simulation.now
    turn = 0
    while simulation.now < since + 45.0:
        turn += 1
        for process in processes if everywhere else [processes[turn % count]]:
            process.connect(2, SIZE, simulation.now, waits=True)
        simulation.run(connected)
        for process in processes:
            process.connections = []
        simulation.run(paused)
    burst = simulation.limit / 15.0
    assert max(simulation.rates(since, 15.0)) <= 1.05 * (simulation.limit + burst)
    assert mean(simulation.rates(since)) <= 1.05 * simulation.limit


@pytest.mark.parametrize("connections", [1, 4])
def test_demand_that_moves_has_the_limit_within_a_second(connections: int) -> None:
    simulation, (a, b, _) = three(connections)
    a.connect(connections, SIZE, simulation.now)
    simulation.run(10.0)
    a.connections = []
    b.connect(connections, SIZE, simulation.now)
    simulation.run(1.0)
    since = simulation.now
    simulation.run(3.0)
    assert mean(simulation.rates(since, only=b)) >= 0.98 * simulation.limit


@pytest.mark.parametrize("stays", [1, 4])
def test_demand_of_some_clients_that_move_has_its_part_within_a_second(stays: int) -> None:
    simulation, (a, b, _) = three(stays)
    a.connect(9, SIZE, simulation.now)
    simulation.run(10.0)
    since = simulation.now
    a.connections = a.connections[:stays]
    b.connect(9 - stays, SIZE, simulation.now)
    simulation.run(1.0)
    assert b.part() >= 0.98 * (9 - stays) / 9
    simulation.run(5.0)
    assert simulation.most(since - 5.0) <= MOST


@pytest.mark.parametrize("count", [1, 2])
def test_without_the_log_the_whole_limit_gets_through(count: int) -> None:
    """`count` of two processes have the demand when the log goes away, and one of them is suspended then."""
    for seed in range(8):
        simulation = Simulation(seed)
        processes = [simulation.start(name) for name in "ab"]
        simulation.run(5.0)
        for process in processes[:count]:
            process.connect(3, SIZE, simulation.now)
        simulation.run(4.0 + simulation.log.random.random())
        simulation.log.away = True
        simulation.run(3.0)
        since = simulation.now
        simulation.run(5.0)
        rates = simulation.rates(since)
        processes[0].stopped = True
        simulation.run(2.0)
        processes[0].resume(simulation.now)
        simulation.run(3.0)
        since = simulation.now
        simulation.run(5.0)
        for rate in (mean(rates), mean(simulation.rates(since))):
            assert 0.98 <= rate / simulation.limit <= 1.01, (seed, rate)


def test_the_share_of_a_killed_process_is_used_within_three_seconds() -> None:
    simulation, processes = three()
    for process in processes:
        process.connect(2, SIZE, simulation.now)
    simulation.run(10.0)
    processes[0].running = False
    simulation.run(3.0)
    since = simulation.now
    simulation.run(3.0)
    assert mean(simulation.rates(since)) >= 0.98 * simulation.limit


@pytest.mark.parametrize("count", [2, 3, 10])
def test_a_new_process_joins_within_a_second_and_without_a_dent(count: int) -> None:
    for seed in range(5):
        simulation = Simulation(seed)
        processes = [simulation.start(f"p{number}") for number in range(count)]
        simulation.run(5.0)
        for process in processes:
            process.connect(2, SIZE, simulation.now)
        simulation.run(10.0 + simulation.log.random.random())
        since = simulation.now
        new = simulation.start("new")
        new.connect(2, SIZE, simulation.now)
        simulation.run(0.25)
        assert new.joined, "the others have looked at their limits as soon as they had read of it"
        simulation.run(0.45)
        assert new.part() >= 0.9 / (count + 1), seed
        simulation.run(0.3)
        joined = simulation.now
        simulation.run(5.0)
        part = simulation.limit / (count + 1)
        assert mean(simulation.rates(joined, only=new)) == pytest.approx(part, rel=0.1)
        assert min(simulation.rates(since)) >= 0.9 * simulation.limit
        assert simulation.most(since) <= MOST


@pytest.mark.parametrize("count", [2, 3, 10])
def test_clients_that_come_to_one_more_process_have_no_burst_there(count: int) -> None:
    """The others use the whole limit. The first request goes through at once, the next ones with the part."""
    simulation = Simulation(count)
    *others, last = [simulation.start(f"p{number}") for number in range(count)]
    simulation.run(5.0)
    for process in others:
        process.connect(2, SIZE, simulation.now)
    simulation.run(10.0)
    since = simulation.now
    last.connect(2, SIZE, simulation.now)
    simulation.run(2 * STEP)
    assert len(last.served) == 2
    simulation.run(1.0)
    assert last.part() == pytest.approx(1 / count, rel=0.1)
    simulation.run(9.0)
    assert simulation.most(since - 5.0) <= MOST
    assert min(simulation.rates(since)) >= 0.9 * simulation.limit


def test_a_client_of_one_process_has_the_whole_burst_of_its_part() -> None:
    """Nobody else uses the limit, so the part is an equal one."""
    simulation, (a, _, _) = three()
    a.connect(1, SIZE, simulation.now)
    simulation.run(0.2)
    assert sum(value for _, value, _ in a.served) >= simulation.limit / 3


def test_a_process_that_starts_again_has_no_burst() -> None:
    for seed in range(5):
        simulation, (a, b, c) = three(seed)
        for process in (a, b, c):
            process.connect(2, SIZE, simulation.now)
        simulation.run(10.0)
        b.running = False
        simulation.run(8.0)
        since = simulation.now
        simulation.start("b again").connect(2, SIZE, simulation.now)
        simulation.run(8.0)
        assert simulation.most(since - 5.0) <= MOST, seed
        assert min(simulation.rates(since)) >= 0.9 * simulation.limit, seed


def test_after_the_leader_of_the_log_was_killed_there_is_the_burst_of_one_process() -> None:
    """It leads the topic of one process's clients, too: meanwhile they do not send."""
    for seed in range(5):
        simulation, processes = three(seed)
        for process in processes:
            process.connect(2, SIZE, simulation.now)
        simulation.run(10.0)
        since = simulation.now
        simulation.log.away = True
        processes[2].connections = []
        simulation.run(10.0)
        simulation.log.away = False
        processes[2].connect(2, SIZE, simulation.now)
        simulation.run(10.0)
        assert simulation.most(since, after_burst=True) <= MOST, seed


def test_two_hundred_joins_and_leaves_leave_the_limit_as_it_is() -> None:
    """Two processes stay; others start, serve clients, and stop or are killed."""
    simulation = Simulation(7)
    stays = [simulation.start(name) for name in "ab"]
    for process in stays:
        process.connect(2, SIZE, 0.0)
    simulation.run(5.0)
    since = simulation.now
    comes: list[Process] = []
    for number in range(100):
        comes.append(simulation.start(f"n{number}"))
        comes[-1].connect(1, SIZE, simulation.now, waits=True)
        simulation.run(0.15)
        if len(comes) > 3:
            goes = comes.pop(simulation.log.random.randrange(3))
            goes.running = False
            if number % 4:
                left = goes.sharing.report([], simulation.now, leaving=True)
                assert left is not None
                simulation.log.send(left, simulation.now)
        simulation.run(0.15)
    assert simulation.most(since) <= MOST
    assert all(set(process.sharing.names()) >= {"a", "b"} for process in stays)
    for process in comes:
        process.running = False
    simulation.run(4.0)
    quiet = simulation.now
    simulation.run(5.0)
    assert stays[0].sharing.names() == ["a", "b"]
    assert mean(simulation.rates(quiet)) == pytest.approx(simulation.limit, rel=0.02)
