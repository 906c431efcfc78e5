"""QuotaTopic on a broker in memory; tests/integration/admin/test_store.py has a real topic."""

from collections.abc import AsyncIterator, Callable

import pytest
from aiokafka import AIOKafkaProducer
from kio.schema.errors import ErrorCode

from proxy.quota.identity import QuotaEntity
from proxy.store import consumers, quota_topic
from proxy.store.quota_records import Place, Setting, encode
from proxy.store.quota_store import QuotaStore, StoreUnavailable
from proxy.store.quota_topic import QuotaTopic
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.wire.api_keys import LIST_OFFSETS, METADATA, PRODUCE
from tests.support.process.log_broker import LogBroker
from tests.support.quotas.memory_store import file_of
from tests.support.waiting import reached

ALICE = QuotaEntity("alice", None)
RATE = "producer_byte_rate"
PLACE = Place(ALICE, RATE)
SETTING = Setting(value=5.0, by="admin", client_id="c", origin="::1", at_ms=1)
KEY, VALUE = encode(PLACE, SETTING)
Follow = Callable[[LogBroker], QuotaTopic]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probe and retry often."""
    monkeypatch.setattr(quota_topic, "PROBE_SECONDS", 0.05)
    monkeypatch.setattr(consumers, "RETRY_SECONDS", 0.05)


@pytest.fixture
async def broker() -> AsyncIterator[LogBroker]:
    async with LogBroker("quotas") as broker:
        yield broker


@pytest.fixture
def store() -> QuotaStore:
    return QuotaStore(file_of({}), lambda limits: None)


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    """Tasks that end with the test."""
    tasks = Tasks()
    yield tasks
    await tasks.cancel()


@pytest.fixture
async def follow(store: QuotaStore, tasks: Tasks) -> AsyncIterator[Follow]:
    """Starts to follow a broker's topic, until the end of the test."""
    started: list[QuotaTopic] = []

    def start(broker: LogBroker) -> QuotaTopic:
        topic = QuotaTopic(ClusterAccess((broker.address,), 5.0), broker.topic, store, tasks)
        started.append(topic)
        tasks.start(topic.run())
        return topic

    yield start
    await tasks.cancel()
    for topic in started:
        await topic.close()


def quota(store: QuotaStore, user: str = "alice") -> float | None:
    """The effective quota of a user."""
    return store.effective.get(QuotaEntity(user, None), {}).get(RATE)


async def is_loaded(topic: QuotaTopic) -> None:
    await reached(lambda: topic.loaded.is_set() and not topic.problem, "the topic is loaded")


async def has_problem(topic: QuotaTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the end offset is awaited for longer: a busy machine may pause for half a second."""
    with monkeypatch.context() as impatient:
        impatient.setattr(quota_topic, "END_OFFSET_SECONDS", 0.5)
        await reached(lambda: topic.problem, "the problem")


async def test_changes_are_rejected_until_the_topic_is_loaded(store: QuotaStore) -> None:
    topic = QuotaTopic(ClusterAccess((("127.0.0.1", 1),), 1.0), "quotas", store, Tasks())
    with pytest.raises(StoreUnavailable):
        await topic.append([(PLACE, SETTING)])


async def test_the_brokers_of_the_settings_may_all_have_been_replaced(
    broker: LogBroker, store: QuotaStore, tasks: Tasks
) -> None:
    cluster = ClusterAccess((("127.0.0.1", 1),), 5.0, known=lambda: [broker.address])
    topic = QuotaTopic(cluster, broker.topic, store, tasks)
    tasks.start(topic.run())
    await is_loaded(topic)
    await topic.append([(PLACE, SETTING)])
    assert quota(store) == 5.0
    await topic.close()


async def test_a_missing_topic_is_created(follow: Follow) -> None:
    async with LogBroker("quotas", create=False) as broker:
        topic = follow(broker)
        await is_loaded(topic)
        assert broker.topic_id is not None
        assert topic.lag == 0


async def test_records_from_before_the_start_and_later_ones_take_effect(
    broker: LogBroker, store: QuotaStore, follow: Follow
) -> None:
    broker.append([(KEY, VALUE)])
    await is_loaded(follow(broker))
    assert quota(store) == 5.0
    broker.append([encode(Place(QuotaEntity("bob", None), RATE), SETTING)])
    await reached(lambda: quota(store, "bob") == 5.0, "the later record")


async def test_an_appended_change_is_in_force(broker: LogBroker, store: QuotaStore, follow: Follow) -> None:
    topic = follow(broker)
    await is_loaded(topic)
    many = [(Place(QuotaEntity(f"user-{number}", None), RATE), SETTING) for number in range(300)]
    await topic.append([(PLACE, SETTING), *many])
    assert broker.values == [VALUE] * 301
    assert (quota(store), quota(store, "user-299")) == (5.0, 5.0)


async def test_the_next_change_finds_the_leader_at_its_current_address(
    broker: LogBroker, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer requests metadata between two changes. Its reader does so every 30 s."""
    monkeypatch.setattr(quota_topic, "METADATA_SECONDS", 0.05)
    topic = follow(broker)
    await is_loaded(topic)
    await topic.append([(PLACE, SETTING)])
    before = broker.metadata_requests
    await reached(lambda: broker.metadata_requests > before + 1, "the producer's requests")


async def test_records_that_cannot_be_read_are_skipped(
    broker: LogBroker, store: QuotaStore, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    broker.append([(b"x", b"{}"), (None, VALUE), (KEY, VALUE)])
    topic = follow(broker)
    await is_loaded(topic)
    assert quota(store) == 5.0
    assert (topic.skipped.total, topic.skipped.current) == (2, 2)
    assert sum("topic quotas" in message and "offset" in message for message in caplog.messages) == 2
    assert "offset 1:" in topic.skipped.warning


@pytest.mark.parametrize("later", [VALUE, None], ids=["readable", "tombstone"])
async def test_a_later_record_of_the_same_key_ends_the_warning(
    later: bytes | None, broker: LogBroker, follow: Follow
) -> None:
    broker.append([(KEY, b"\xff")])
    topic = follow(broker)
    await is_loaded(topic)
    assert topic.skipped.current == 1
    broker.append([(KEY, later)])
    await reached(lambda: topic.skipped.current == 0, "the later record")
    assert topic.skipped.warning == ""


async def test_a_tombstone_of_an_unreadable_key_ends_the_warning(broker: LogBroker, follow: Follow) -> None:
    broker.append([(b"\xff", b"{}"), (b"\xff", None)])
    topic = follow(broker)
    await is_loaded(topic)
    assert (topic.skipped.total, topic.skipped.current) == (1, 0)


async def test_reading_continues_after_a_disconnection(
    broker: LogBroker, store: QuotaStore, follow: Follow
) -> None:
    """A record is applied once: what was skipped before is not read again."""
    broker.append([(b"x", b"{}"), (KEY, VALUE)])
    topic = follow(broker)
    await is_loaded(topic)
    broker.disconnect()
    broker.append([encode(Place(QuotaEntity("bob", None), RATE), SETTING)])
    await reached(lambda: quota(store, "bob") == 5.0, "the record after the disconnection")
    assert (quota(store), topic.skipped.total) == (5.0, 1)


async def test_a_recreated_topic_is_read_from_its_start(
    broker: LogBroker, store: QuotaStore, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.append([(b"x", b"{}"), (KEY, VALUE)])
    topic = follow(broker)
    await is_loaded(topic)
    # Whatever takes longer than this is tried again.
    monkeypatch.setattr(quota_topic, "END_OFFSET_SECONDS", 0.5)
    broker.delete()
    await reached(lambda: topic.problem, "the deletion")
    broker.create()
    bob = encode(Place(QuotaEntity("bob", None), RATE), SETTING)
    # As many records as before: only its id tells that the topic is another one.
    broker.append([bob, bob])
    await reached(lambda: quota(store, "bob") == 5.0 and quota(store) is None, "the new topic's quotas")
    assert topic.skipped.current == 0


async def test_a_topic_that_has_lost_records_is_read_from_its_start(
    broker: LogBroker, store: QuotaStore, follow: Follow
) -> None:
    broker.append([(KEY, VALUE), (b"x", b"{}")])
    topic = follow(broker)
    await is_loaded(topic)
    broker.truncate()
    broker.append([encode(Place(QuotaEntity("bob", None), RATE), SETTING)])
    broker.disconnect()
    await reached(lambda: quota(store, "bob") == 5.0 and quota(store) is None, "the records that are left")
    assert topic.skipped.current == 0


async def test_a_topic_whose_unread_records_were_deleted_is_read_from_its_start(
    broker: LogBroker, store: QuotaStore, follow: Follow
) -> None:
    broker.append([(KEY, VALUE)])
    await is_loaded(follow(broker))
    broker.append([(KEY, VALUE)])
    broker.delete_records()
    broker.append([encode(Place(QuotaEntity("bob", None), RATE), SETTING)])
    await reached(lambda: quota(store, "bob") == 5.0 and quota(store) is None, "the records that are left")


async def test_a_stored_change_that_is_not_read_back_is_not_called_rejected(
    broker: LogBroker, store: QuotaStore, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = follow(broker)
    await is_loaded(topic)

    async def unread(offset: int) -> None:
        raise TimeoutError

    monkeypatch.setattr(topic, "_read_up_to", unread)
    with pytest.raises(StoreUnavailable, match=r"\bis stored\b.*\btopic quotas\b"):
        await topic.append([(PLACE, SETTING)])
    await reached(lambda: quota(store) == 5.0, "the change")


@pytest.mark.parametrize("silent", [LIST_OFFSETS, METADATA], ids=["leader", "cluster"])
async def test_a_cluster_without_responses_is_a_problem_until_it_responds(
    silent: int,
    broker: LogBroker,
    follow: Follow,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = follow(broker)
    await is_loaded(topic)
    broker.silent.add(silent)
    broker.disconnect()
    await has_problem(topic, monkeypatch)
    with pytest.raises(StoreUnavailable, match="topic quotas"):
        await topic.append([(PLACE, SETTING)])
    assert [record.levelname for record in caplog.records if "topic quotas" in record.message][
        -1
    ] == "WARNING"
    broker.silent.clear()
    broker.disconnect()
    await reached(lambda: not topic.problem, "the end of the problem")
    await topic.append([(PLACE, SETTING)])


@pytest.mark.parametrize("silent", [True, False], ids=["no response", "no leader"])
async def test_a_rejected_change_is_not_written_later(
    silent: bool, broker: LogBroker, store: QuotaStore, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiokafka's idempotent producer retries forever; it is abandoned with what it has not sent."""
    topic = follow(broker)
    await is_loaded(topic)
    monkeypatch.setattr(quota_topic, "REQUEST_SECONDS", 0.5)
    connections = broker.connections
    if silent:
        broker.silent.add(PRODUCE)
    else:
        broker.produce_error = ErrorCode.not_leader_or_follower
    with pytest.raises(StoreUnavailable):
        await topic.append([(PLACE, SETTING)])
    # Until then, the broker may not have read a request that was sent in time.
    await reached(lambda: broker.connections <= connections, "the end of the producer's connections")
    broker.silent.clear()
    broker.produce_error = ErrorCode.none
    monkeypatch.setattr(quota_topic, "REQUEST_SECONDS", 10.0)
    bob = Setting(value=7.0, by="admin", client_id="c", origin="::1", at_ms=2)
    await topic.append([(Place(QuotaEntity("bob", None), RATE), bob)])
    await reached(lambda: topic.lag == 0, "the end of the topic")
    assert len(broker.values) == 1
    assert (quota(store), quota(store, "bob")) == (None, 7.0)


async def test_without_the_right_to_read_the_topic(broker: LogBroker, follow: Follow) -> None:
    """A record has to be there, because an empty topic is read to its end without a fetch."""
    broker.append([(KEY, VALUE)])
    broker.fetch_error = ErrorCode.topic_authorization_failed
    topic = follow(broker)
    await reached(lambda: "may not read" in topic.problem, "the reason")
    assert f"Describe, Read and Write on topic {broker.topic}" in topic.problem
    broker.fetch_error = ErrorCode.none
    await is_loaded(topic)


async def test_without_the_right_to_write_the_topic(
    broker: LogBroker, store: QuotaStore, follow: Follow
) -> None:
    topic = follow(broker)
    await is_loaded(topic)
    broker.produce_error = ErrorCode.topic_authorization_failed
    with pytest.raises(StoreUnavailable, match="no quota was changed") as caught:
        await topic.append([(PLACE, SETTING)])
    assert f"Describe, Read and Write on topic {broker.topic}" in str(caught.value)
    assert topic.write_problem in str(caught.value)
    assert (topic.problem, quota(store)) == ("", None)
    broker.produce_error = ErrorCode.none
    await topic.append([(PLACE, SETTING)])
    assert (topic.write_problem, quota(store)) == ("", 5.0)


async def test_the_sender_of_aiokafkas_producer_can_be_cancelled() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", enable_idempotence=True)
    try:
        assert producer._sender.sender_task is None, "it has not been started"
    finally:
        await producer.client.close()
        producer._closed = True
