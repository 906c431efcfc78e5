"""Buckets of partitions whose limits come from a quota callback."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes import sourced_partitions
from proxy.quota.kinds.topic_partition_bytes.sourced_partitions import SourcedPartitions
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.limits.limit_source import LimitSource, SourcedLimit
from proxy.quota.measure.rate_rule import RateRule
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item
from tests.support.present import present
from tests.support.sharing.members import a_quarter

WHO = Identity("alice", "app", "127.0.0.1")
RULE = RateRule(burst_seconds=1.0)


class Rules(LimitSource):
    """Each user has a bucket for each partition of orders; others are unlimited."""

    def __init__(self, limit: float = 1000.0, keep: bool = True, by_partition: bool = True) -> None:
        super().__init__(by_partition)
        self.limit = limit
        self.keep = keep
        self.asked = 0

    def find(
        self, key: str, user: str, client_id: str, now: float, topic: str = "", partition: int = -1
    ) -> SourcedLimit | None:
        self.asked += 1
        if topic != "orders":
            return None
        return SourcedLimit(f"{user} {partition}", "", self.limit, keep=self.keep)


def partitions(source: Rules | None) -> SourcedPartitions:
    made = SourcedPartitions("producer_byte_rate")
    made.configure(source, RULE, 0.0)
    return made


def item(topic: str = "orders", partition: int = 0) -> Item:
    return Item(topic, NO_ID, partition, 10)


def test_the_source_is_called_once() -> None:
    source = Rules()
    made = partitions(source)
    bucket = present(made.find(item(), WHO, 0.0))
    assert made.find(item(), WHO, 0.0) is bucket
    assert made.find(item(partition=1), WHO, 0.0) is not bucket
    assert [made.find(item("others"), WHO, 0.0) for _ in range(3)] == [None] * 3
    assert source.asked == 3
    assert (bucket.user, bucket.limit) == ("alice 0", 1000.0)


def test_a_result_that_is_not_kept_is_looked_up_again() -> None:
    source = Rules(keep=False)
    made = partitions(source)
    bucket = present(made.find(item(), WHO, 0.0))
    source.limit = 500.0
    assert made.find(item(), WHO, 0.0) is bucket
    assert (bucket.limit, source.asked) == (500.0, 2)


def test_no_limit_is_no_bucket() -> None:
    assert partitions(Rules(UNLIMITED)).find(item(), WHO, 0.0) is None


@pytest.mark.parametrize("source", [None, Rules(by_partition=False)])
def test_a_source_without_partitions_gives_none(source: Rules | None) -> None:
    made = partitions(source)
    assert not made.any
    assert made.find(item(), WHO, 0.0) is None
    assert made.live() == []


def test_a_new_source_keeps_the_history() -> None:
    made = partitions(Rules())
    bucket = present(made.find(item(), WHO, 0.0))
    bucket.record(3000, 0.0)
    made.configure(Rules(500.0), RULE, 0.0)
    assert made.find(item(), WHO, 0.0) is bucket
    assert bucket.record(0, 0.0) == pytest.approx(4.0)
    assert made.live() == [bucket]


def test_idle_state_is_dropped() -> None:
    source = Rules()
    made = partitions(source)
    made.find(item(), WHO, 0.0)
    made.forget_idle(3600.0)
    assert made.live() == []
    made.find(item(), WHO, 3600.0)
    assert source.asked == 2


def test_made_up_partitions_have_a_bounded_number_of_buckets() -> None:
    made = partitions(Rules())
    hot = present(made.find(item(partition=-1), WHO, 0.0))
    for partition in range(sourced_partitions.BUCKETS_AT_MOST):
        made.find(item(partition=partition), WHO, 0.0)
        if partition == 1000:
            hot.record(5000, 1.0)
    assert len(made.live()) <= sourced_partitions.BUCKETS_AT_MOST
    assert made.find(item(partition=-1), WHO, 1.0) is hot


def test_the_cached_results_are_bounded() -> None:
    source = Rules()
    made = partitions(source)
    others = item("others")
    for partition in range(sourced_partitions.FOUND_AT_MOST + 1):
        others.partition = partition
        made.find(others, WHO, 0.0)
    assert len(made._found) == 1
    made.find(others, WHO, 0.0)
    assert source.asked == sourced_partitions.FOUND_AT_MOST + 1


def test_a_new_bucket_begins_with_its_part_of_a_shared_limit() -> None:
    made = partitions(Rules())
    made.first_parts = a_quarter()
    bucket = present(made.find(item(), WHO, 0.0))
    assert (bucket.limit, bucket.whole_limit) == (250.0, 1000.0)


def test_a_new_rule_reaches_every_bucket() -> None:
    source = Rules()
    made = partitions(source)
    bucket = present(made.find(item(), WHO, 0.0))
    made.configure(source, RateRule(burst_seconds=1.0, mode=OBSERVE), 0.0)
    assert bucket.observed
    assert made.find(item(), WHO, 0.0) is bucket
