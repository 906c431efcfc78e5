"""Requests whose keys collide in a broker's hash tables, or that name a thing again and again, end the
connection; no byte reaches the broker.
"""

import struct
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import pytest

from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.wire.frames import CUT_THROUGH_BYTES
from tests.support.messages.exchanges import chunks
from tests.support.messages.kio_messages import Ports, request_frame, request_type
from tests.support.messages.random_messages import sample
from tests.support.stories.playbook import Playbook, drive, engine, new_relay

# API, version, array, and the name of its key
ARRAYS = [
    (0, 9, "topic_data", "name"),
    (11, 9, "protocols", "name"),
    (24, 3, "v3_and_below_topics", "name"),
    (23, 4, "topics", "topic"),
]


def request(api_key: int, version: int, array: str, key: str, names: list[str], **more: Any) -> bytes:
    """A request with an element for each of these names."""
    message = sample(request_type(api_key, version))
    (element, *_) = getattr(message, array)
    elements = tuple(replace(element, **{key: name}, **more) for name in names)
    return request_frame(replace(message, **{array: elements}), 1)


@pytest.mark.parametrize(("api_key", "version", "array", "key"), ARRAYS)
def test_equal_keys_end_the_connection(api_key: int, version: int, array: str, key: str) -> None:
    told = Playbook(new_relay())
    frame = request(api_key, version, array, key, ["t"] * 200)
    told.client_fails(frame, reason=CLIENT_PROTOCOL_ERROR, says="keys are equal")
    told.to_broker()


@pytest.mark.parametrize(("api_key", "version", "array", "key"), ARRAYS)
def test_as_many_different_keys_are_forwarded(api_key: int, version: int, array: str, key: str) -> None:
    frame = request(api_key, version, array, key, [f"topic-{at}" for at in range(200)])
    Playbook(new_relay()).client(frame).to_broker(frame)


NAMED: Final = [(3, 12, "topics"), (20, 6, "topics"), (75, 0, "topics"), (9, 8, "groups"), (15, 5, "groups")]
"""Requests whose responses have what they name: Metadata, DeleteTopics, DescribeTopicPartitions, OffsetFetch,
DescribeGroups.
"""


@pytest.mark.parametrize(("api_key", "version", "array"), NAMED)
def test_what_is_named_again_and_again_ends_the_connection(api_key: int, version: int, array: str) -> None:
    """A broker is busy for minutes with the former, and exhausts its memory for the latter."""
    message = sample(request_type(api_key, version))
    frame = request_frame(replace(message, **{array: getattr(message, array)[:1] * 200}), 1)
    told = Playbook(new_relay())
    told.client_fails(frame, reason=CLIENT_PROTOCOL_ERROR, says=r"names are equal|again and again|by id")
    told.to_broker()


def test_equal_topics_in_a_subscription_end_the_connection() -> None:
    """A coordinator reads it when the group changes to another protocol."""
    message = sample(request_type(11, 9))
    owned = struct.pack(">hiii", 1, 0, -1, 200) + struct.pack(">h1si", 1, b"t", 0) * 200
    protocol = replace(message.protocols[0], metadata=owned)
    frame = request_frame(replace(message, protocol_type="consumer", protocols=(protocol,)), 1)
    told = Playbook(new_relay())
    told.client_fails(frame, reason=CLIENT_PROTOCOL_ERROR, says="keys are equal")
    told.to_broker()


@pytest.mark.parametrize(
    ("api_key", "version", "field"),
    [(66, 2, "transactional_id_pattern"), (68, 1, "subscribed_topic_regex")],
)
def test_a_pattern_that_a_broker_compiles_without_end(api_key: int, version: int, field: str) -> None:
    message = sample(request_type(api_key, version))
    usual = request_frame(replace(message, **{field: "orders-[0-9]{1,9}"}), 1)
    Playbook(new_relay()).client(usual).to_broker(usual)
    told = Playbook(new_relay())
    hostile = request_frame(replace(message, **{field: "(((a{100}){100}){100}){100}"}), 2)
    told.client_fails(hostile, reason=CLIENT_PROTOCOL_ERROR, says="a pattern that repeats too much")
    told.to_broker()


def test_brokers_may_send_any_keys() -> None:
    """A follower of 12,000 topics asks for the epochs of all of them."""
    frame = request(23, 4, "topics", "topic", [f"topic-{at}" for at in range(12_000)])
    relay = drive(engine({}), Ports(), Traffic(), between_brokers=True)
    Playbook(relay).client(frame).to_broker(frame)


def test_a_large_request_whose_end_has_not_arrived() -> None:
    told = Playbook(new_relay())
    large = request(11, 9, "protocols", "name", [str(at) for at in range(200)], metadata=bytes(10_000))
    assert len(large) > CUT_THROUGH_BYTES
    told.client_fails(large[:CUT_THROUGH_BYTES], reason=CLIENT_PROTOCOL_ERROR, says="too large")
    told.to_broker()


def test_a_large_request_with_few_elements() -> None:
    large = request(11, 9, "protocols", "name", ["range", "sticky"], metadata=bytes(CUT_THROUGH_BYTES))
    Playbook(new_relay()).client(large).to_broker(large)


def large_produce(version: int, topics: list[Any]) -> list[bytes]:
    """The chunks of a Produce request whose first topic has 1.5 MiB of records."""
    message = sample(request_type(0, version))
    (topic, *_) = message.topic_data
    (partition, *_) = topic.partition_data
    key = "topic_id" if version >= 13 else "name"
    first = replace(
        topic,
        partition_data=(replace(partition, records=bytes(3 * CUT_THROUGH_BYTES // 2)),),
        **{key: UUID(int=7) if version >= 13 else "first"},
    )
    others = [replace(topic, partition_data=(), **{key: name}) for name in topics]
    return chunks(request_frame(replace(message, topic_data=(first, *others)), 1))


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_the_topics_of_a_large_produce_request(version: int) -> None:
    """Brokers read a request when it is whole, so the proxy keeps its end back."""
    same = [UUID(int=1 << 70) if version >= 13 else "t"] * 150
    parts = large_produce(version, same)
    told = Playbook(new_relay())
    told.client_fails(*parts, reason=CLIENT_PROTOCOL_ERROR, says="keys are equal")
    assert 0 < len(b"".join(told.relay.take_to_broker())) < len(b"".join(parts))
    different = [UUID(int=at << 70) if version >= 13 else f"topic-{at}" for at in range(1, 300)]
    parts = large_produce(version, different)
    Playbook(new_relay()).client(*parts).to_broker(*parts)


def metadata_by_id(number: int) -> bytes:
    """Metadata of so many topics by id."""
    message = sample(request_type(3, 13))
    topic = message.topics[0]
    topics = tuple(replace(topic, topic_id=UUID(int=at + 1), name=None) for at in range(number))
    return request_frame(replace(message, topics=topics), 1)


def test_the_number_of_topics_by_id_is_a_setting() -> None:
    def connection() -> Playbook:
        return Playbook(drive(engine({}), Ports(), Traffic(), max_topics_by_id=1500))

    connection().client(metadata_by_id(1500)).to_broker(metadata_by_id(1500))
    connection().client_fails(
        metadata_by_id(1501), reason=CLIENT_PROTOCOL_ERROR, says=r"limits.max_topics_by_id"
    )
    told = Playbook(new_relay())
    told.client_fails(metadata_by_id(767), reason=CLIENT_PROTOCOL_ERROR, says="more than 766 topics by id")
