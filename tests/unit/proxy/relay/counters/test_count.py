"""Count: a counter."""

from proxy.relay.counters.count import Count


def test_it_counts_from_zero() -> None:
    count = Count()
    count.value += 2
    assert count.value == 2
