"""What is rejected, what that makes a client wait, and how it is counted."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.quota import Quota
from proxy.quota.rejection import rejections as module
from proxy.quota.rejection.rejections import NOTHING_REJECTED, OUT_OF_ORDER, RejectedItems, Rejections
from proxy.quota.usage import REST, UsageLedger
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView

WHO = Identity("u", "c", "127.0.0.1")
MAX_SECONDS = 10.0


def head(sequence: int, producer_id: int = 7) -> bytes:
    """Of a batch with ten records."""
    start = bytes(16) + b"\x02" + bytes(6) + (9).to_bytes(4, "big") + bytes(16)
    return start + producer_id.to_bytes(8, "big") + bytes(2) + sequence.to_bytes(4, "big") + bytes(4)


class Hot(Quota):
    """Rejects these partitions as long as the test says."""

    def __init__(
        self, limit: float = 1000.0, partitions: tuple[int, ...] = (0,), used: int = 100_000
    ) -> None:
        super().__init__((0,))
        self.bucket = Bucket(
            quota="hot", limit=limit, rule=RateRule(burst_seconds=1.0), now=0.0, topic="orders"
        )
        self.bucket.record(used, 0.0)
        self.partitions = partitions

    def reject(self, items: list[Item], over: dict[int, Bucket], now: float) -> None:
        for index, item in enumerate(items):
            if item.partition in self.partitions:
                over.setdefault(index, self.bucket)


def request(*sizes: int, sequence: int = 0, topic: str = "orders", timeout_ms: int = 30_000) -> RequestView:
    view = RequestView(0, 9, 1, "c", 10_000)
    view.timeout_ms = timeout_ms
    view.items = [Item(topic, NO_ID, partition, size, head(sequence)) for partition, size in enumerate(sizes)]
    return view


def judge(rejections: Rejections, quota: Hot, of: RequestView, now: float = 0.0) -> RejectedItems:
    return rejections.reject([quota], of, WHO, MAX_SECONDS, now)


def test_only_partitions_over_the_limit_are_rejected() -> None:
    rejections = Rejections()
    assert judge(rejections, Hot(partitions=()), request(100, 100)) is NOTHING_REJECTED
    verdict = judge(rejections, Hot(partitions=(0, 2)), request(100, 100, 100))
    assert (verdict.items, verdict.throttle_seconds) == ([0, 2], 0.0)


def test_a_client_waits_once_its_rejected_bytes_exceed_the_limit() -> None:
    rejections, hot = Rejections(), Hot()
    waits = [judge(rejections, hot, request(500), now).throttle_seconds for now in (0.0, 0.0, 0.0, 0.5, 2.0)]
    assert waits == pytest.approx([0.0, 0.0, 0.5, 0.5, 0.0])


@pytest.mark.parametrize(
    ("timeout_ms", "seconds"), [(30_000, 1.0), (8000, 1.0), (4000, 0.5), (1, 0.1), (0, 0.1), (-1, 0.1)]
)
def test_a_mute_is_a_part_of_the_wait_that_the_clients_timeout_allows(
    timeout_ms: int, seconds: float
) -> None:
    rejections, hot = Rejections(), Hot()
    verdict = judge(rejections, hot, request(10_000, timeout_ms=timeout_ms))
    assert (verdict.throttle_seconds, verdict.mute_seconds) == pytest.approx((9.0, seconds))
    assert hot.bucket.throttle_seconds == 0.0
    rejections.count_mute(verdict, WHO, 0.0)
    assert hot.bucket.throttle_seconds == pytest.approx(seconds)


def test_a_mute_is_no_longer_than_the_wait() -> None:
    verdict = judge(Rejections(), Hot(), request(1050))
    assert (verdict.throttle_seconds, verdict.mute_seconds) == pytest.approx((0.05, 0.05))


def test_clients_that_do_not_wait_make_no_debt_beyond_the_maximum() -> None:
    rejections, hot = Rejections(), Hot(used=1_000_000)
    for _ in range(100):
        judge(rejections, hot, request(10_000))
    assert judge(rejections, hot, request(0), MAX_SECONDS - 1.0).throttle_seconds == pytest.approx(1.0)


def test_a_wait_ends_at_the_maximum_or_when_the_bucket_is_within_its_limit() -> None:
    assert judge(Rejections(), Hot(), request(1_000_000)).throttle_seconds == MAX_SECONDS
    assert judge(Rejections(), Hot(used=1500), request(1_000_000)).throttle_seconds == pytest.approx(0.5)


def test_batches_rejected_for_their_order_add_nothing_to_the_wait() -> None:
    rejections, hot = Rejections(), Hot()
    assert judge(rejections, hot, request(1500)).throttle_seconds == pytest.approx(0.5)
    verdicts = [judge(rejections, hot, request(5000, sequence=10 * at)) for at in (1, 2, 3)]
    assert [(verdict.items, verdict.throttle_seconds) for verdict in verdicts] == [([0], 0.0)] * 3


class Calm(Hot):
    """Says that it rejects nothing now."""

    def rejects_now(self, now: float) -> bool:
        return False


def test_items_may_be_rejected_while_a_quota_does_or_later_batches_must_be() -> None:
    rejections, hot, calm = Rejections(), Hot(), Calm(partitions=())
    assert not rejections.may_reject([calm, calm], 0.0)
    assert rejections.may_reject([calm, hot], 0.0)
    judge(rejections, hot, request(100))
    assert rejections.may_reject([calm], 0.0), "the next batch is out of order"
    judge(rejections, calm, request(100))
    assert not rejections.may_reject([calm], 0.0)


def test_later_batches_are_rejected_though_the_partition_is_under_again() -> None:
    rejections, hot = Rejections(), Hot()
    assert judge(rejections, hot, request(100, 100)).items == [0]
    hot.partitions = ()
    assert judge(rejections, hot, request(100, 100, sequence=10)).items == [0]
    assert judge(rejections, hot, request(100)) is NOTHING_REJECTED
    assert judge(rejections, hot, request(100, sequence=10)) is NOTHING_REJECTED
    assert {names: counted.bytes for names, counted in rejections.topics.items()} == {
        ("orders", "hot"): 100,
        ("orders", OUT_OF_ORDER): 100,
    }


def test_rejections_are_counted_by_topic_and_reason() -> None:
    rejections, hot = Rejections(), Hot(partitions=(0, 1))
    judge(rejections, hot, request(100, 50, 25))
    judge(rejections, hot, request(200, topic="others"))
    counted = rejections.topics["orders", "hot"]
    assert (counted.requests, counted.bytes, counted.client_id, counted.limit) == (1, 150, "c", 1000.0)
    assert rejections.topics["others", "hot"].bytes == 200
    assert hot.bucket.throttled_requests == 2
    assert hot.bucket.state(0.0).throttled_until > 0.0


def test_rejections_and_mutes_are_in_the_clients_usage() -> None:
    rejections, hot = Rejections(), Hot(partitions=(0, 2))
    usage = UsageLedger().client(1, "u", "c")
    who = Identity("u", "c", "127.0.0.1", usage)
    verdict = rejections.reject([hot], request(600, 100, 1500), who, MAX_SECONDS, 0.0)
    rejections.count_mute(verdict, who, 0.0)
    taken = {each.topic and each.partition: each.tally for each in usage.take()}
    rejected = {place: (tally.rejected_requests, tally.rejected_bytes) for place, tally in taken.items()}
    assert rejected == {0: (1, 600), 2: (0, 1500), "": (0, 0)}
    assert (taken[""].throttled_requests, taken[""].throttle_seconds) == (1, 1.0)
    assert {tally.quota for tally in taken.values()} == {"hot"}


def test_a_client_that_does_not_wait_is_counted_as_not_muted() -> None:
    rejections, hot = Rejections(), Hot()
    usage = UsageLedger().client(1, "u", "c")
    who = Identity("u", "c", "127.0.0.1", usage)
    rejections.count_mute(rejections.reject([hot], request(100), who, MAX_SECONDS, 0.0), who, 0.0)
    assert sum(each.tally.throttle_seconds for each in usage.take()) == 0.0


def test_counters_do_not_grow_without_end() -> None:
    rejections, hot = Rejections(), Hot()
    for number in range(module.TOPICS_AT_MOST + 2):
        judge(rejections, hot, request(1, topic=f"t{number}"))
    assert len(rejections.topics) == module.TOPICS_AT_MOST + 1
    assert rejections.topics[REST, "hot"].requests == 2


@pytest.mark.parametrize("seconds_between", [0.0, 0.001])
def test_the_rejected_bytes_of_made_up_partitions_are_bounded(seconds_between: float) -> None:
    rejections, hot = Rejections(), Hot()
    judge(rejections, hot, request(100_000))
    for number in range(module.DEBTS_AT_MOST + 1):
        judge(rejections, Hot(), request(1), number * seconds_between)
    assert len(rejections._rejected_bytes) <= module.DEBTS_AT_MOST


def test_making_room_keeps_debts() -> None:
    rejections, hot = Rejections(), Hot()
    judge(rejections, hot, request(100_000))
    for number in range(module.DEBTS_AT_MOST + 1):
        judge(rejections, Hot(), request(1), number * 0.0001)
    assert judge(rejections, hot, request(0), 1.0).throttle_seconds == pytest.approx(MAX_SECONDS - 1.0)


def test_batches_of_old_clients_have_no_order() -> None:
    rejections, hot = Rejections(), Hot()
    old = request(100)
    old.items = [Item("orders", NO_ID, 0, 100, bytes(20))]
    assert judge(rejections, hot, old).items == [0]
    hot.partitions = ()
    assert judge(rejections, hot, old) is NOTHING_REJECTED


def test_clear_and_forget() -> None:
    rejections, hot = Rejections(), Hot()
    judge(rejections, hot, request(2000))
    hot.partitions = ()
    rejections.clear()
    assert judge(rejections, hot, request(10, sequence=10)) is NOTHING_REJECTED
    hot.partitions = (0,)
    judge(rejections, hot, request(2000))
    rejections.forget_idle(3600.0)
    hot.partitions = ()
    assert judge(rejections, hot, request(10, sequence=20), 3600.0) is NOTHING_REJECTED
