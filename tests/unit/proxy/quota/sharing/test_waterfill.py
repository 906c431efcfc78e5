"""Max-min fair division."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.quota.sharing.waterfill import RESERVE, Demand, divide


def shares_of(rate: float, demands: list[float], weights: list[float], silent: int = 0) -> list[float]:
    """The shares of the demands in the same order, and of the silent processes."""
    wants = [Demand(str(number), *want) for number, want in enumerate(zip(demands, weights, strict=True))]
    share = divide(rate, list(wants), silent)
    return [want.share for want in wants] + [share] * silent


@pytest.mark.parametrize(
    ("demands", "weights", "expected"),
    [
        ([math.inf, math.inf], [1.0, 1.0], [50.0, 50.0]),
        ([math.inf, math.inf], [1.0, 3.0], [25.0, 75.0]),
        ([20.0, math.inf], [1.0, 1.0], [20.0, 80.0]),
        ([20.0, math.inf, math.inf], [5.0, 1.0, 3.0], [20.0, 20.0, 60.0]),
        ([10.0, 30.0], [1.0, 1.0], [40.0, 60.0]),
        ([0.0, math.inf], [1.0, 1.0], [100 * RESERVE / 2, 100 - 100 * RESERVE / 2]),
        ([math.inf], [7.0], [100.0]),
        ([], [], []),
    ],
)
def test_divides(demands: list[float], weights: list[float], expected: list[float]) -> None:
    assert shares_of(100.0, demands, weights) == pytest.approx(expected)


@given(
    st.floats(1e-3, 1e12),
    st.lists(
        st.tuples(st.floats(0.0, 1e12) | st.just(math.inf), st.floats(1.0, 1e4)), min_size=1, max_size=9
    ),
)
def test_shares_add_up_to_the_rate_and_none_has_more_than_its_part(
    rate: float, wants: list[tuple[float, float]]
) -> None:
    demands = [demand for demand, _ in wants]
    weights = [weight for _, weight in wants]

    shares = shares_of(rate, demands, weights)

    assert sum(shares) == pytest.approx(rate)
    assert min(shares) > 0.0
    for share, demand, weight in zip(shares, demands, weights, strict=True):
        if share < demand * 0.999:
            # One whose demand is not met has at least the part of each other by weight, beyond the reserve.
            others = max(s / w for s, d, w in zip(shares, demands, weights, strict=True) if s <= d)
            assert share / weight >= others * 0.999 - rate * RESERVE


@given(
    st.lists(st.tuples(st.floats(0.0, 200.0) | st.just(math.inf), st.floats(1.0, 9.0)), max_size=9),
    st.integers(0, 9),
)
def test_silent_processes_are_those_without_a_demand(wants: list[tuple[float, float]], silent: int) -> None:
    demands = [demand for demand, _ in wants]
    weights = [weight for _, weight in wants]
    told = shares_of(100.0, demands + [0.0] * silent, weights + [1.0] * silent)
    assert shares_of(100.0, demands, weights, silent) == pytest.approx(told)


def test_the_order_of_the_demands_does_not_matter() -> None:
    """All processes have to compute the same, to the last bit: another order would round differently."""
    wants = [
        Demand(name, demand, 3.0)
        for name, demand in zip("abcdef", (9.0, 1.0, 5.0, 5.0, math.inf, math.inf), strict=True)
    ]
    divide(0.7, wants, 1)
    shares = {want.name: want.share for want in wants}
    other = [Demand(want.name, want.demand, 3.0) for want in reversed(wants)]
    divide(0.7, other, 1)
    assert {want.name: want.share for want in other} == shares
    assert [want.name for want in other] == [want.name for want in wants]
