"""KafkaTopic without Kafka; tests/integration/test_store.py has a real topic."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from proxy.quota.identity import QuotaEntity
from proxy.store.kafka_topic import KafkaTopic
from proxy.store.quota_store import QuotaStore, StoreUnavailable
from proxy.store.records import Place, Setting, Unreadable, encode
from proxy.tasks import Tasks

PLACE = Place(QuotaEntity("alice", None), "producer_byte_rate")
SETTING = Setting(value=5.0, by="admin", client_id="c", origin="::1", at_ms=1)
TOPIC = TopicPartition("quotas", 0)


class Store:
    """Records what the topic passes to the store."""

    def __init__(self) -> None:
        self.changes: list[object] = []
        self.restarts = 0
        self.rejected = ""

    def check(self, place: Place, setting: Setting | None) -> None:
        assert isinstance(place.entity, QuotaEntity)
        if place.entity.user == self.rejected:
            raise Unreadable("value rejected")

    def read(self, changes: list[object]) -> None:
        self.changes += changes

    def read_anew(self) -> None:
        self.restarts += 1


class Consumer:
    """A consumer of a partition with these records, from offset 0."""

    def __init__(self, *records: tuple[bytes, bytes | None]) -> None:
        self.records = [
            SimpleNamespace(offset=offset, key=key, value=value)
            for offset, (key, value) in enumerate(records)
        ]
        self.sought: list[int] = []

    async def getmany(self, *_: object, **__: object) -> dict[TopicPartition, list[Any]]:
        return {TOPIC: self.records}

    async def end_offsets(self, _: object) -> dict[TopicPartition, int]:
        return {TOPIC: len(self.records)}

    async def beginning_offsets(self, _: object) -> dict[TopicPartition, int]:
        return {TOPIC: 0}

    def seek(self, _: object, offset: int) -> None:
        self.sought.append(offset)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def topic(store: Store) -> KafkaTopic:
    return KafkaTopic([("127.0.0.1", 1)], "quotas", cast("QuotaStore", store), Tasks(), 1.0)


async def test_changes_are_rejected_until_the_topic_is_loaded(topic: KafkaTopic) -> None:
    with pytest.raises(StoreUnavailable):
        await topic.append([(PLACE, SETTING)])


async def test_records_reach_the_store_and_wake_the_writer(topic: KafkaTopic, store: Store) -> None:
    written = asyncio.get_running_loop().create_task(topic._read_up_to(0))
    await asyncio.sleep(0)
    assert await topic._read(Consumer(encode(PLACE, SETTING)), 1.0) == 1
    await written
    assert store.changes == [(PLACE, SETTING)]


async def test_records_that_cannot_be_read_or_applied_are_skipped(
    topic: KafkaTopic, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.rejected = "bob"
    bob = encode(Place(QuotaEntity("bob", None), "producer_byte_rate"), SETTING)
    await topic._read(Consumer((b"x", b"{}"), bob, encode(PLACE, SETTING)), 1.0)
    assert store.changes == [(PLACE, SETTING)]
    assert (topic.skipped.total, topic.skipped.current) == (2, 2)
    assert len(caplog.messages) == 2
    assert "at offset 1: value rejected" in topic.skipped.warning


@pytest.mark.parametrize("later", [encode(PLACE, SETTING)[1], None], ids=["readable", "tombstone"])
async def test_a_later_record_of_the_same_key_ends_the_warning(
    topic: KafkaTopic, later: bytes | None
) -> None:
    key = encode(PLACE, SETTING)[0]
    await topic._read(Consumer((key, b"\xff")), 1.0)
    assert topic.skipped.current == 1
    await topic._read(Consumer((key, later)), 1.0)
    assert (topic.skipped.current, topic.skipped.warning) == (0, "")


async def test_a_tombstone_of_an_unreadable_key_ends_the_warning(
    topic: KafkaTopic, caplog: pytest.LogCaptureFixture
) -> None:
    await topic._read(Consumer((b"\xff", b"{}"), (b"\xff", None)), 1.0)
    assert (topic.skipped.total, topic.skipped.current) == (1, 0)
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("same_topic", "position", "start", "restarts"),
    [(True, 1, 1, 0), (True, 3, 0, 1), (False, 1, 0, 1)],
    ids=["continues", "lost records", "recreated"],
)
async def test_reading_starts_over_in_a_recreated_or_shorter_topic(
    topic: KafkaTopic, store: Store, same_topic: bool, position: int, start: int, restarts: int
) -> None:
    topic._topic_id, topic._position = UUID(int=1), position
    topic.skipped.skip(b"x", 0, "unreadable")
    consumer = Consumer((b"x", b"{}"), (b"x", None))
    await topic._seek(consumer, UUID(int=1 if same_topic else 2))
    assert (consumer.sought, store.restarts) == ([start], restarts)
    assert topic.skipped.current == 1 - restarts


class Producer:
    """aiokafka's producer while the topic's leader is away: it sends when the leader is back."""

    def __init__(self, fails: BaseException | None) -> None:
        self.written: list[bytes | None] = []
        self.leader_is_back = asyncio.Event()
        self.stopped = asyncio.Event()
        self._fails = fails
        self._pending: list[bytes | None] = []
        task = asyncio.get_running_loop().create_task(self._send_pending())
        # What the real one has under this name; see the next test.
        self._sender = SimpleNamespace(sender_task=task)

    async def _send_pending(self) -> None:
        await self.leader_is_back.wait()
        self.written += self._pending

    async def send(self, topic: str, value: bytes | None, key: bytes, partition: int) -> asyncio.Future[Any]:
        self._pending.append(value)
        sent = asyncio.get_running_loop().create_future()
        if self._fails is not None:
            sent.set_exception(self._fails)
        return sent

    async def stop(self) -> None:
        """As aiokafka's: send what is pending first, if the sender still runs."""
        await asyncio.wait([self._sender.sender_task])
        self.stopped.set()


@pytest.mark.parametrize("fails", [KafkaError("no leader"), None], ids=["an error", "a timeout"])
async def test_a_rejected_change_is_not_written_later(
    fails: BaseException | None, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when the leader is back: the producer is abandoned with what it has not sent."""
    monkeypatch.setattr("proxy.store.kafka_topic.REQUEST_SECONDS", 0.05)
    topic.problem = ""
    topic._producer = producer = Producer(fails)
    with pytest.raises(StoreUnavailable):
        await topic.append([(PLACE, SETTING)])
    assert topic._producer is None
    producer.leader_is_back.set()
    async with asyncio.timeout(10):
        await producer.stopped.wait()
    assert producer.written == []


async def test_the_sender_of_aiokafkas_producer_can_be_cancelled() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", enable_idempotence=True)
    try:
        assert producer._sender.sender_task is None, "it has not been started"
    finally:
        await producer.client.close()
        producer._closed = True
