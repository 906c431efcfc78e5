"""FairShare against a naive model: each debtor's own amount, paid in equal parts until one is done."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fair_share import FairShare
from proxy.quota.measure.rate_rule import RateRule

RATE = 100.0
STEP = 0.01
"""Times come in hundredths of a second, in which one token refills."""
SOME = 5
MINIMUM = 1e-9


class Naive:
    def __init__(self) -> None:
        self.owed = [0.0] * SOME
        self.known: set[int] = set()

    def pay(self, tokens: float) -> None:
        while tokens > MINIMUM and any(self.owed):
            owing = [index for index, owed in enumerate(self.owed) if owed > 0]
            part = min(tokens / len(owing), min(self.owed[index] for index in owing))
            for index in owing:
                left = self.owed[index] - part
                self.owed[index] = left if left > MINIMUM else 0.0
            tokens -= part * len(owing)

    def wait(self, who: int) -> float:
        """How long until this one's debt is paid if nobody owes more; at first, until all of it is."""
        most = self.owed[who] if who in self.known else math.inf
        self.known.add(who)
        return sum(min(owed, most) for owed in self.owed) / RATE


uses = st.lists(st.tuples(st.integers(0, SOME - 1), st.integers(0, 300), st.integers(0, 200)), max_size=60)


@given(uses)
def test_shares_are_those_of_the_naive_model(uses: list[tuple[int, int, int]]) -> None:
    connections = [Identity("u", "c", "127.0.0.1") for _ in range(SOME)]
    ours, theirs, steps = FairShare(0.0), Naive(), 0
    for who, tokens, later in uses:
        steps += later
        theirs.pay(later * STEP * RATE)
        theirs.owed[who] += tokens
        wait = ours.owe(connections[who], float(tokens), RATE, steps * STEP)
        assert wait == pytest.approx(theirs.wait(who), abs=1e-6)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 100), min_size=2, max_size=4))
def test_active_connections_get_equal_rates_whatever_their_request_size(sizes: list[int]) -> None:
    connections = [Identity("u", "c", "127.0.0.1") for _ in sizes]
    shares, got = FairShare(0.0), [0.0] * len(sizes)
    free_at = [0.0] * len(sizes)
    settled = 20 * max(sizes) / RATE
    end = 120 * max(sizes) / RATE
    while min(free_at) < end:
        now = min(free_at)
        which = free_at.index(now)
        got[which] += sizes[which] if now > settled else 0
        free_at[which] = now + max(shares.owe(connections[which], float(sizes[which]), RATE, now), 1e-4)
    even = sum(got) / len(sizes)
    assert got == pytest.approx([even] * len(sizes), rel=0.1)
    assert sum(got) == pytest.approx(RATE * (end - settled), rel=0.1)


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 2_000_000)), max_size=60))
def test_alone_in_its_bucket_a_connection_waits_for_all_of_the_debt(uses: list[tuple[int, int]]) -> None:
    rule, who, now = RateRule(burst_seconds=1.0), Identity("u", "c", "127.0.0.1"), 1000.0
    divided, whole = (
        Bucket(quota="producer_byte_rate", user="u", limit=1e6, rule=rule, now=now) for _ in range(2)
    )
    for later, size in uses:
        now += later / 1000
        assert divided.record(size, now, who) == pytest.approx(whole.record(size, now), abs=1e-5)
