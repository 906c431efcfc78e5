"""An idempotent producer with several requests in flight, and rejections at random: a broker finds no gap in
the sequence numbers, and every batch gets through once the rejections end.
"""

from hypothesis import given
from hypothesis import strategies as st

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.rejection.rejected_batches import RejectedBatches
from proxy.wire.cursor import NO_ID
from proxy.wire.records.producer_batch import ProducerBatch
from proxy.wire.views import Item

WHO = Identity("u", "c", "127.0.0.1")
BUCKET = Bucket(quota="q", limit=1.0, rule=RateRule(burst_seconds=1.0), now=0.0)
ITEM = Item("orders", NO_ID, 0, 100)
IN_FLIGHT = 5
SEQUENCES = 2**31


class Producer:
    """Sends batches in order, up to IN_FLIGHT ahead, and again what was rejected, by its numbers."""

    def __init__(self, first: int, sizes: list[int]) -> None:
        self.waiting: list[ProducerBatch] = []
        for size in sizes:
            self.waiting.append(ProducerBatch(7, 0, first, size, first, 0))
            first = (first + size) % SEQUENCES
        self.in_flight: list[ProducerBatch] = []
        self.all = list(self.waiting)

    def send(self) -> None:
        while self.waiting and len(self.in_flight) < IN_FLIGHT:
            self.in_flight.append(self.waiting.pop(0))

    def take(self) -> ProducerBatch:
        return self.in_flight.pop(0)

    def rejected(self, batch: ProducerBatch) -> None:
        self.waiting.append(batch)
        self.waiting.sort(key=self.all.index)


class Broker:
    """Appends batches whose numbers follow, and knows those that it has."""

    def __init__(self, first: int) -> None:
        self.expected = first
        self.appended: list[ProducerBatch] = []

    def append(self, batch: ProducerBatch) -> None:
        assert batch.base_sequence == self.expected, "OUT_OF_ORDER_SEQUENCE_NUMBER"
        self.expected = batch.next_sequence
        self.appended.append(batch)


@given(
    first=st.sampled_from([0, 1, SEQUENCES - 20, SEQUENCES - 1]),
    sizes=st.lists(st.integers(1, 10), min_size=1, max_size=30),
    decisions=st.lists(st.booleans(), max_size=60),
)
def test_no_gap_reaches_the_broker_and_everything_gets_through(
    first: int, sizes: list[int], decisions: list[bool]
) -> None:
    batches, producer, broker = RejectedBatches(), Producer(first, sizes), Broker(first)
    rejections = iter(decisions)
    responses = 0
    while producer.waiting or producer.in_flight:
        producer.send()
        batch = producer.take()
        responses += 1
        assert responses < 10_000, "some batch never gets through"
        if batches.gate_bucket(ITEM, batch, WHO, 0.0) is not None:
            producer.rejected(batch)
        elif next(rejections, False):
            batches.reject(ITEM, batch, WHO, BUCKET, throttle_seconds=0.0, mute_seconds=0.0, now=0.0)
            producer.rejected(batch)
        else:
            batches.admit(ITEM, batch, WHO)
            broker.append(batch)
    assert broker.appended == producer.all
    assert not batches.any
