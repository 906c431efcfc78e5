"""The broker-side quota, whose rate is an average over a minute, at several processes and at one."""

from statistics import mean

import pytest

from tests.support.sharing.simulation import Simulation


def averages(demands: tuple[float, ...], names: str = "abc") -> list[float]:
    """What each process admits under a broker-side quota, as a part of the limit."""
    simulation = Simulation(1)
    processes = [simulation.start(name, averages=True) for name in names]
    simulation.run(5.0)
    for process, demand in zip(processes, demands, strict=True):
        process.steady = demand * simulation.limit
    simulation.run(120.0)
    since = simulation.now
    simulation.run(240.0)
    return [mean(simulation.rates(since, only=process)) / simulation.limit for process in processes]


@pytest.mark.parametrize("demands", [(0.9, 0.6, 0.1), (2.0, 0.0, 0.0), (0.5, 0.5, 0.5), (3.0, 3.0, 0.2)])
def test_a_broker_s_average_is_as_exact_as_in_one_process(demands: tuple[float, ...]) -> None:
    """A one-minute average that rejects everything or nothing is not exact in one process either."""
    [alone] = averages((sum(demands),), "a")
    together = averages(demands)
    assert sum(together) == pytest.approx(alone, abs=0.15)
    assert sum(together) <= 1.2
    least = min(demand for demand in demands if demand)
    if least < 1 / len(demands):
        assert min(rate for rate in together if rate) == pytest.approx(least, rel=0.02)


def test_nothing_is_rejected_under_the_average() -> None:
    assert averages((0.9, 0.03, 0.0)) == pytest.approx([0.9, 0.03, 0.0], rel=0.02)
