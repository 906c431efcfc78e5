"""Processes that share a limit of request time: together, they are no freer than one process.

As in Kafka, a request is charged when the broker has responded, and no wait is longer than a second. So
connections whose requests are slow exceed a small limit, natively, too: six of them exceed one of 10 % by
1.2 times if each request takes 20 ms, and 7 times if they take up to 250 ms.
"""

from collections.abc import Callable
from random import Random
from statistics import mean
from typing import Final

import pytest

from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.debt import Debt
from proxy.quota.measure.rate_rule import RateRule
from tests.support.sharing import simulation as simulation_module
from tests.support.sharing.simulation import Connection, Process, Simulation

LIMIT: Final = 10.0
"""Percent."""
SETTLING: Final = 15.0
SECONDS: Final = 60.0
SEEDS: Final = 3
MANY_SEEDS: Final = 12
"""If few requests are slow, the figures of one seed differ more."""
LONGEST_WAIT: Final = 1.0
RULES: Final = {
    "pace": RateRule(burst_seconds=1.0, max_throttle_seconds=LONGEST_WAIT, max_debt_seconds=11.0),
    "window": RateRule(max_throttle_seconds=LONGEST_WAIT, max_debt_seconds=0.0),
}
"""As proxy.quota.kinds.request_percentage makes them."""
TIMES: Final[dict[str, Callable[[Random], float]]] = {
    "equal": lambda random: 0.02,
    "unequal": lambda random: random.uniform(0.01, 0.25),
}
"""How long the broker takes for a request, in seconds."""


def some_slow(random: Random) -> float:
    """One request in twenty takes a second. So a process has no debt for a while, and others have one."""
    return 1.0 if random.random() < 0.05 else 0.01


class Worker(Process):
    """A process whose connections send a request when the response to the last one has arrived, and the wait
    is over. Connection.size is the time that its request takes.
    """

    times: Callable[[], float]

    def _serve(self, connection: Connection, now: float) -> None:
        if connection.debt is not None:
            connection.ready_at = connection.debt.review(now + self.skew) - self.skew
            if connection.ready_at <= now:
                connection.debt = None
                self._send(connection, now)
            return
        bucket: Bucket = self.meet(connection.entity, now)
        seconds = self._use(bucket, connection.size * 100.0, now, None, connection.entity)
        if seconds <= 0.0:
            self._send(connection, now)
            return
        until = now + self.skew + seconds
        bucket.count_throttle(seconds, 1, until)
        connection.ready_at = now + seconds
        connection.debt = Debt(bucket, connection.who, until)

    def _send(self, connection: Connection, now: float) -> None:
        connection.size = self.times()
        connection.ready_at = now + connection.size


def admitted(
    connections: tuple[int, ...], times: Callable[[Random], float], seed: int
) -> tuple[float, float]:
    """What processes admit with so many connections each: the mean, and the most in five seconds, as parts of
    the limit.
    """
    simulation = Simulation(seed, limit=LIMIT)
    random = Random(seed)
    workers: list[Worker] = []
    for number in range(len(connections)):
        worker = Worker(f"p{number}", simulation.log, LIMIT, simulation.now)
        worker.times = lambda: times(random)
        workers.append(worker)
        simulation.processes.append(worker)
    simulation.run(5.0)
    for worker, count in zip(workers, connections, strict=True):
        worker.connect(count, 0.0, simulation.now)
    simulation.run(SETTLING)
    since = simulation.now
    simulation.run(SECONDS)
    return mean(simulation.rates(since)) / LIMIT, simulation.most(since)


def of_seeds(
    connections: tuple[int, ...], times: Callable[[Random], float], seeds: int = SEEDS
) -> tuple[float, float]:
    found = [admitted(connections, times, seed) for seed in range(seeds)]
    return mean(each for each, _ in found), mean(most for _, most in found)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("rule", RULES)
def test_processes_admit_no_more_than_one(rule: str, times: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections have equal parts, also if one process has most of them. Otherwise, those of the others
    could use more, because the waits of its own connections are bounded.
    """
    monkeypatch.setattr(simulation_module, "RULE", RULES[rule])
    average, most = of_seeds((6,), TIMES[times])
    assert average > 1.1, "the excess is native"
    for connections in ((3, 3), (6, 0), (2, 2, 2), (4, 1, 1)):
        found, found_most = of_seeds(connections, TIMES[times])
        assert 0.95 * average <= found <= 1.05 * average, connections
        assert found_most <= 1.05 * most, connections


def test_processes_admit_no_more_than_one_if_some_requests_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has no debt makes its clients wait while the others have one."""
    monkeypatch.setattr(simulation_module, "RULE", RULES["pace"])
    average, most = of_seeds((6,), some_slow, MANY_SEEDS)
    for connections in ((2, 2, 2), (4, 1, 1)):
        found, found_most = of_seeds(connections, some_slow, MANY_SEEDS)
        assert 0.95 * average <= found <= 1.05 * average, connections
        assert found_most <= 1.05 * most, connections
