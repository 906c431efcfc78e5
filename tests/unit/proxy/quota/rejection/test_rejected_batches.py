"""No batch overtakes one that was rejected before it."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.rejection import rejected_batches
from proxy.quota.rejection.rejected_batches import IDEMPOTENT_SECONDS, OTHERS_SECONDS, RejectedBatches
from proxy.wire.cursor import NO_ID
from proxy.wire.records.producer_batch import NO_PRODUCER_ID, ProducerBatch
from proxy.wire.views import Item

WHO = Identity("u", "c", "127.0.0.1")
OTHER = Identity("u", "c", "127.0.0.1")
BUCKET = Bucket(quota="q", limit=1.0, rule=RateRule(burst_seconds=1.0), now=0.0)
ITEM = Item("orders", NO_ID, 0, 100)
LAST = 2**31 - 1


def numbered(sequence: int, records: int = 10, epoch: int = 0, producer_id: int = 7) -> ProducerBatch:
    return ProducerBatch(producer_id, epoch, sequence, records, 0, 0)


def dated(timestamp: int, checksum: int) -> ProducerBatch:
    return ProducerBatch(NO_PRODUCER_ID, -1, -1, 1, checksum, timestamp)


def reject_first(batches: RejectedBatches, producer_id: int, who: Identity) -> None:
    """Reject the first batch of a producer, which need not wait."""
    batch = numbered(0, producer_id=producer_id)
    batches.reject(ITEM, batch, who, BUCKET, throttle_seconds=0.0, mute_seconds=0.0, now=0.0)


class Partition:
    """What comes of the batches of one partition, in words."""

    def __init__(self) -> None:
        self.batches = RejectedBatches()

    def judged(
        self, batch: ProducerBatch, over: bool, now: float = 0.0, who: Identity = WHO, item: Item = ITEM
    ) -> str:
        if self.batches.gate_bucket(item, batch, who, now) is not None:
            return "behind"
        if over:
            self.batches.reject(item, batch, who, BUCKET, throttle_seconds=0.0, mute_seconds=0.0, now=now)
            return "rejected"
        self.batches.admit(item, batch, who)
        return "on"


@pytest.mark.parametrize("first", [0, 1000, LAST - 15])
def test_later_batches_of_an_idempotent_producer_wait_for_the_rejected_one(first: int) -> None:
    partition = Partition()
    a, b, c, d = (numbered((first + 10 * at) % 2**31) for at in range(4))
    assert [partition.judged(batch, over) for batch, over in ((a, True), (b, False), (c, False))] == [
        "rejected",
        "behind",
        "behind",
    ]
    assert partition.judged(c, False) == "behind"
    assert partition.judged(a, False) == "on"
    assert partition.judged(c, False) == "behind", "b comes first"
    assert [partition.judged(batch, False) for batch in (b, c, d)] == ["on"] * 3
    assert not partition.batches.any


def test_the_rejected_one_may_be_rejected_again() -> None:
    partition = Partition()
    a, b = numbered(0), numbered(10)
    assert [partition.judged(a, True), partition.judged(b, True)] == ["rejected", "behind"]
    assert [partition.judged(a, True), partition.judged(b, False)] == ["rejected", "behind"]
    assert [partition.judged(a, False), partition.judged(b, True)] == ["on", "rejected"]
    assert [partition.judged(b, False), partition.judged(numbered(20), False)] == ["on", "on"]


def test_batches_before_the_rejected_one_are_forwarded() -> None:
    partition = Partition()
    assert partition.judged(numbered(10), True) == "rejected"
    assert partition.judged(numbered(0), False) == "on"
    assert partition.judged(numbered(0), True) == "rejected"
    assert partition.judged(numbered(0), False) == "on"
    assert partition.judged(numbered(20), False) == "behind"
    assert partition.judged(numbered(10), False) == "on"


def test_a_new_epoch_begins_anew() -> None:
    partition = Partition()
    partition.judged(numbered(10), True)
    assert partition.judged(numbered(20, epoch=1), False) == "on"
    assert not partition.batches.any


def test_producers_and_partitions_do_not_wait_for_each_other() -> None:
    partition = Partition()
    partition.judged(numbered(10), True)
    assert partition.judged(numbered(20, producer_id=8), False) == "on"
    assert partition.judged(numbered(20), False, item=Item("orders", NO_ID, 1, 100)) == "on"
    assert partition.judged(numbered(20), False, who=OTHER) == "behind", "a producer may connect anew"


def test_a_user_that_makes_up_the_producer_id_of_another_has_no_effect_on_its_batches() -> None:
    partition = Partition()
    stranger = Identity("stranger", "c", "127.0.0.1")
    partition.judged(numbered(0), True, who=stranger)
    assert partition.judged(numbered(10), False) == "on"
    partition.judged(numbered(20), True)
    assert partition.judged(numbered(30, epoch=1), False, who=stranger) == "on"
    assert partition.judged(numbered(30), False) == "behind"


def test_a_gate_opens_at_its_deadline() -> None:
    partition = Partition()
    partition.judged(numbered(10), True)
    assert partition.judged(numbered(20), False, IDEMPOTENT_SECONDS - 0.1) == "behind"
    assert partition.judged(numbered(20), False, IDEMPOTENT_SECONDS) == "on"


def test_other_producers_batches_are_known_by_checksum_or_time() -> None:
    partition = Partition()
    a, b = dated(100, 1), dated(105, 2)
    assert [partition.judged(a, True), partition.judged(b, False)] == ["rejected", "behind"]
    assert partition.judged(b, False, who=OTHER) == "on", "they are known by their connection"
    assert [partition.judged(a, False), partition.judged(b, False)] == ["on", "on"]
    partition.judged(dated(100, 1), True)
    assert partition.judged(dated(100, 9), False) == "on", "put together anew"
    partition.judged(b, True)
    assert partition.judged(dated(200, 3), False, OTHERS_SECONDS - 0.1) == "behind"
    assert partition.judged(dated(200, 3), False, OTHERS_SECONDS) == "on"


@pytest.mark.parametrize(
    ("first", "later", "seconds"),
    [
        (numbered(10), numbered(20), 9.0 + IDEMPOTENT_SECONDS),
        (dated(100, 1), dated(200, 2), 2.0 + OTHERS_SECONDS),
    ],
    ids=["idempotent: the announced wait counts", "others: the mute counts"],
)
def test_a_gate_outlasts_its_producers_wait(
    first: ProducerBatch, later: ProducerBatch, seconds: float
) -> None:
    batches = RejectedBatches()
    batches.reject(ITEM, first, WHO, BUCKET, throttle_seconds=9.0, mute_seconds=1.0, now=0.0)
    assert batches.gate_bucket(ITEM, later, WHO, seconds - 0.1) is BUCKET
    assert batches.gate_bucket(ITEM, later, WHO, seconds) is None


def test_gates_end_at_their_deadline_and_are_bounded() -> None:
    batches = RejectedBatches()
    reject_first(batches, 7, WHO)
    batches.forget(IDEMPOTENT_SECONDS - 1)
    assert batches.any
    batches.forget(IDEMPOTENT_SECONDS)
    assert not batches.any
    for producer_id in range(rejected_batches.GATES_AT_MOST + 1):
        reject_first(batches, producer_id, WHO)
    assert batches.gate_bucket(ITEM, numbered(10, producer_id=0), WHO, 0.0) is None
    assert batches.gate_bucket(ITEM, numbered(10, producer_id=producer_id), WHO, 0.0) is BUCKET
    batches.clear()
    assert not batches.any


def test_the_principal_with_the_most_gates_makes_room() -> None:
    batches, neighbour = RejectedBatches(), Identity("neighbour", "c", "127.0.0.1")
    reject_first(batches, 1, neighbour)
    for producer_id in range(rejected_batches.GATES_AT_MOST):
        reject_first(batches, producer_id, WHO)
    later = numbered(10, producer_id=1)
    assert batches.gate_bucket(ITEM, later, neighbour, 0.0) is BUCKET
    assert batches.gate_bucket(ITEM, later, WHO, 0.0) is None
