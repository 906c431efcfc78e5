"""Moves of replicas under a throttle, simulated: see tests/support/simulations/move.py."""

import statistics
from itertools import pairwise

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import WINDOW
from proxy.quota.limits.limits import Limits
from tests.support.simulations.move import (
    MEBIBYTE,
    START,
    Fetcher,
    by_second,
    copies,
    quotas,
    run,
    throttled,
)

RATE = 4 * MEBIBYTE
SECONDS = 20
PLENTY = 10**10
WHO = Identity("ANONYMOUS", "", "127.0.0.1")


def steady(came: list[tuple[float, int]], seconds: int = SECONDS) -> list[int]:
    """Bytes of each second after the first two."""
    return by_second(came, seconds)[2:]


def paced(came: list[tuple[float, int]], rate: int = RATE, variation: float = 0.15) -> None:
    sizes = steady(came)
    assert statistics.mean(sizes) == pytest.approx(rate, rel=0.05)
    assert statistics.pstdev(sizes) / statistics.mean(sizes) < variation


@pytest.mark.parametrize("limits", [throttled(RATE), throttled(None, RATE), throttled(RATE, RATE)])
@pytest.mark.parametrize("batch", [1000, 16_000, 200_000])
def test_the_rate_of_a_reassignment_is_even(limits: Limits, batch: int) -> None:
    fetcher = Fetcher(quotas(limits, [1])[1], 2, copies(2, 8, PLENTY, batch))
    came = run([fetcher], SECONDS)
    paced(came)
    assert max(by_second(came, 1)) <= 2.1 * RATE
    assert max(copy.longest_wait for copy in fetcher.copies) < 3.0


def test_replicas_start_one_by_one() -> None:
    """A follower takes long over the first bytes of each, and fetches nothing else meanwhile."""
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 20, PLENTY), seconds_to_begin=0.04)
    paced(run([fetcher], SECONDS))
    assert len(fetcher.began) == 20
    pauses = [after - before for before, after in pairwise(fetcher.began)]
    assert min(pauses) >= 0.04
    assert min(pauses[2:]) >= 0.08, "half of the burst is used"
    assert max(fetcher.began) < START + 3.0
    assert max(copy.longest_wait for copy in fetcher.copies) < 3.0


@pytest.mark.parametrize(("count", "size", "seconds_to_begin"), [(100, 200_000, 0.04), (600, 10_000, 0.001)])
@pytest.mark.parametrize("limits", [throttled(RATE), throttled(RATE, RATE)])
def test_many_small_replicas_move_at_the_rate(
    limits: Limits, count: int, size: int, seconds_to_begin: float
) -> None:
    """Their starts do not slow the move down."""
    fetcher = Fetcher(quotas(limits, [1])[1], 2, copies(2, count, size), seconds_to_begin=seconds_to_begin)
    came = run([fetcher], SECONDS)
    assert sum(size for _, size in came) == count * size
    assert came[-1][0] <= count * size / RATE
    assert max(by_second(came, SECONDS)) <= 2.1 * RATE


def test_small_replicas_move_at_the_rate_of_slow_fetches_too() -> None:
    """A fetch brings what the throttle has, of those that have started."""
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 40, 500_000), response_seconds=0.15)
    came = run([fetcher], SECONDS)
    assert sum(size for _, size in came) == 40 * 500_000
    assert came[-1][0] <= 0.95 * 40 * 500_000 / RATE


def test_a_throttle_with_bytes_to_spare_for_one_side_only_does_not_hurry() -> None:
    """The follower's limit binds the move, and the leader's has bytes to spare."""
    quota = quotas(throttled(10 * RATE, RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 20, PLENTY), seconds_to_begin=0.04)
    paced(run([fetcher], SECONDS))
    pauses = [after - before for before, after in pairwise(fetcher.began)]
    assert min(pauses[2:]) >= 0.08


def test_a_replica_without_records_does_not_block_others_from_starting() -> None:
    behind = copies(2, 10, PLENTY)
    for copy in behind[:5]:
        copy.size = 0
        copy.item.marks.high_watermark = 1000
        copy.broken = True
    came = run([Fetcher(quotas(throttled(RATE), [1])[1], 2, behind)], SECONDS)
    paced(came)
    assert all(copy.offset > 0 for copy in behind[5:])


def test_with_windows_all_replicas_start_at_once() -> None:
    fetcher = Fetcher(quotas(throttled(RATE, algorithm=WINDOW), [1])[1], 2, copies(2, 5, PLENTY))
    run([fetcher], 1)
    assert max(fetcher.began) - min(fetcher.began) < 0.01


@pytest.mark.parametrize("rate", [100_000, 50 * MEBIBYTE])
def test_slow_and_fast_limits(rate: int) -> None:
    came = run([Fetcher(quotas(throttled(rate), [1])[1], 2, copies(2, 8, PLENTY))], SECONDS)
    paced(came, rate)


def test_a_follower_is_limited_over_all_its_leaders() -> None:
    brokers = quotas(throttled(None, RATE), [1, 2, 3])
    fetchers = [Fetcher(brokers[leader], 3, copies(3, 50, PLENTY, first=50 * leader)) for leader in (1, 2)]
    paced(run(fetchers, SECONDS))
    one, other = (sum(copy.offset for copy in fetcher.copies) for fetcher in fetchers)
    assert one == pytest.approx(other, rel=0.3)


def test_a_leader_is_limited_over_all_its_followers() -> None:
    broker = quotas(throttled(RATE), [1])[1]
    fetchers = [Fetcher(broker, node_id, copies(node_id, 20, PLENTY)) for node_id in (2, 3, 4)]
    paced(run(fetchers, SECONDS))
    shares = [sum(copy.offset for copy in fetcher.copies) for fetcher in fetchers]
    assert max(shares) < 1.5 * min(shares), "the first has the second that was saved up"


def test_each_broker_has_its_own_limits() -> None:
    brokers = quotas(throttled(RATE), [1, 2])
    fetchers = [Fetcher(brokers[leader], 3, copies(3, 4, PLENTY, first=10 * leader)) for leader in (1, 2)]
    paced(run(fetchers, SECONDS), 2 * RATE)


def test_no_partition_starves_over_a_minute() -> None:
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 100, PLENTY, 100_000))
    run([fetcher], 60)
    assert max(copy.longest_wait for copy in fetcher.copies) < 10.0
    assert min(copy.offset for copy in fetcher.copies) > 0


def test_large_batches_are_not_overtaken_by_small_ones() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    large = copies(2, 2, PLENTY, 900_000, first=20)
    fetcher = Fetcher(quota, 2, [*copies(2, 20, PLENTY, 10_000), *large])
    run([fetcher], 30)
    assert max(copy.longest_wait for copy in large) < 5.0
    assert min(copy.offset for copy in large) > 0


def test_partitions_get_equal_rates_whatever_their_batch_size() -> None:
    """Here each batch is all that a fetch may bring of a partition."""
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 8, PLENTY, 900_000, max_bytes=900_000))
    run([fetcher], SECONDS)
    shares = [copy.offset for copy in fetcher.copies]
    assert max(shares) < 2 * min(shares)


def test_a_reassignment_ends_and_no_replica_stays_omitted() -> None:
    fetcher = Fetcher(quotas(throttled(RATE), [1])[1], 2, copies(2, 4, 10_000_000))
    came = run([fetcher], SECONDS)
    assert sum(size for _, size in came) == 40_000_000
    assert came[-1][0] == pytest.approx(40_000_000 / RATE - 1, abs=0.3)


def test_a_changed_limit_holds_within_a_second() -> None:
    brokers = quotas(throttled(RATE), [1])
    fetcher = Fetcher(brokers[1], 2, copies(2, 8, PLENTY))
    run([fetcher], 10)
    brokers[1].configure(throttled(RATE / 4), fetcher.wakes_at)
    sizes = by_second(run([fetcher], 20), 20)[11:]
    assert statistics.mean(sizes) == pytest.approx(RATE / 4, rel=0.1)


def test_with_windows_a_reassignment_has_bursts() -> None:
    came = run([Fetcher(quotas(throttled(RATE, algorithm=WINDOW), [1])[1], 2, copies(2, 8, PLENTY))], 60)
    assert sum(size for _, size in came) / 60 == pytest.approx(RATE, rel=0.2)
    assert by_second(came, 60).count(0) > 10


def test_a_limit_of_zero_stops_the_move() -> None:
    assert run([Fetcher(quotas(throttled(0), [1])[1], 2, copies(2, 8, PLENTY))], 5) == []
