"""Max-min fair division."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.quota.sharing.waterfill import RESERVE, divide


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
    assert divide(100.0, demands, weights) == pytest.approx(expected)


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

    shares = divide(rate, demands, weights)

    assert sum(shares) == pytest.approx(rate)
    assert min(shares) > 0.0
    for share, demand, weight in zip(shares, demands, weights, strict=True):
        if share < demand * 0.999:
            # One whose demand is not met has at least the part of each other by weight, beyond the reserve.
            others = max(s / w for s, d, w in zip(shares, demands, weights, strict=True) if s <= d)
            assert share / weight >= others * 0.999 - rate * RESERVE
