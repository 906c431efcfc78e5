"""What passes is counted: by API, by client, by partition, and in all."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import kio.schema.produce.v13.request as produce_v13
import pytest

from proxy.relay.counters.traffic import Bytes, Traffic
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from tests.relay.produce.test_rejecting import request
from tests.relay.produce.test_rejecting import response as response_to
from tests.support.messages.exchanges import (
    TOPIC,
    api_versions,
    chunks,
    fetch,
    fetch_response,
    fetched,
    milliseconds,
    opaque,
    produce,
    produced,
    responded,
)
from tests.support.messages.kio_messages import read_frame, request_frame, request_type, response_frame
from tests.support.messages.requests import build
from tests.support.stories.playbook import Playbook, new_relay

Key = TypeVar("Key")


def counted(counters: Mapping[Key, Bytes]) -> dict[Key, tuple[int, int]]:
    return {key: (value.bytes_in, value.bytes_out) for key, value in counters.items()}


def test_requests_are_counted_by_api() -> None:
    traffic = Traffic()
    story = Playbook(new_relay(traffic=traffic))
    story.client(produce(1) + produce(2) + fetch(3) + opaque(4, 42) + opaque(5, 255) + opaque(6, 32767))
    assert {key: number for key, number in enumerate(traffic.requests) if number} == {
        0: 2,
        1: 1,
        42: 1,
        255: 2,
    }


def test_bytes_are_counted_in_all_and_by_client() -> None:
    traffic = Traffic()
    one, other = produce(1, size=500, client_id="one"), produce(2, size=900, client_id="other")
    story = Playbook(new_relay(traffic=traffic)).client(one + other).broker(produced(1) + produced(2))
    assert (traffic.total.bytes_in, traffic.total.bytes_out) == (len(one + other), 2 * len(produced(1)))
    by_client = counted(traffic.clients)
    assert by_client[("ANONYMOUS", "one")] == (504, len(produced(1)))
    assert by_client[("ANONYMOUS", "other")] == (904, len(produced(2)))
    story.client(one)
    assert counted(traffic.clients)[("ANONYMOUS", "one")] == (1008, len(produced(1)))


def test_an_opaque_response_is_its_clients() -> None:
    traffic = Traffic()
    Playbook(new_relay(traffic=traffic)).client(opaque(1)).broker(responded(1))
    assert counted(traffic.clients)[("ANONYMOUS", "client")] == (len(opaque(1)), len(responded(1)))


def test_the_proxys_local_responses_are_counted() -> None:
    traffic = Traffic()
    Playbook(new_relay(traffic=traffic)).client(api_versions(1))
    size = len(unsupported_api_versions(1, 0, 4))
    assert traffic.total.bytes_out == size
    assert counted(traffic.clients)[("ANONYMOUS", "client")] == (len(api_versions(1)), size)


def test_partitions_are_not_counted_unless_asked_for() -> None:
    traffic = Traffic()
    Playbook(new_relay(traffic=traffic)).client(produce(1) + fetch(2)).broker(produced(1) + fetched(2))
    assert traffic.partitions == {}


def test_records_are_counted_by_partition() -> None:
    traffic = Traffic(topic_partitions=True)
    story = Playbook(new_relay(traffic=traffic)).client(produce(1, size=500) + fetch(2, version=4))
    response = fetch_response(4, bytes(700))
    response = replace(response, responses=response.responses * 2)
    story.broker(produced(1) + response_frame(response, 2))
    (topic,) = read_frame(request_type(PRODUCE, 7), produce(1, size=500)).topic_data
    sent = len(topic.partition_data[0].records)
    assert counted(traffic.partitions) == {(TOPIC, NO_ID, 0): (sent, 1400)}


def test_records_are_counted_by_topic_id_where_there_is_no_name() -> None:
    traffic = Traffic(topic_partitions=True)
    topic_id = uuid.uuid4()
    partitions = (
        build(produce_v13.PartitionProduceData, index=0, records=bytes(70)),
        build(produce_v13.PartitionProduceData, index=3, records=None),
    )
    request = build(
        produce_v13.ProduceRequest,
        acks=0,
        timeout=milliseconds(0),
        topic_data=(produce_v13.TopicProduceData(topic_id=topic_id, partition_data=partitions),),
    )
    Playbook(new_relay(traffic=traffic)).client(request_frame(request))
    assert counted(traffic.partitions) == {("", topic_id.bytes, 0): (70, 0), ("", topic_id.bytes, 3): (0, 0)}


TOO_LARGE, TIMED_OUT, AFTER_APPEND, DUPLICATE = 10, 7, 20, 46


def results(codes: int) -> bytes:
    """The broker's response to produce(1, ...), whose one partition gets this error."""
    return response_to(1, {TOPIC: {0: (codes, 17)}}, 7)


@pytest.mark.parametrize("size", [500, 3 << 20], ids=["small", "cut through"])
@pytest.mark.parametrize(
    ("code", "counts"),
    [(0, True), (TOO_LARGE, False), (DUPLICATE, False), (TIMED_OUT, True), (AFTER_APPEND, True)],
)
def test_records_count_once_the_broker_has_accepted_them(size: int, code: int, counts: bool) -> None:
    traffic = Traffic(topic_partitions=True)
    sent = produce(1, size=size)
    story = Playbook(new_relay(traffic=traffic)).client(*chunks(sent, 1 << 20)).to_broker(sent)
    assert counted(traffic.partitions) == {}
    story.broker(results(code))
    (topic,) = read_frame(request_type(PRODUCE, 7), sent).topic_data
    size = len(topic.partition_data[0].records)
    assert counted(traffic.partitions) == ({(TOPIC, NO_ID, 0): (size, 0)} if counts else {})


def test_only_the_rejected_partitions_of_a_request_are_not_counted() -> None:
    traffic = Traffic(topic_partitions=True)
    sent = request(1, {"a": [100, 200], "b": [400]})
    Playbook(new_relay(traffic=traffic)).client(sent).broker(
        response_to(1, {"a": {0: (0, 5), 1: (TOO_LARGE, -1)}, "b": {0: (0, 6)}})
    )
    assert counted(traffic.partitions) == {("a", NO_ID, 0): (100, 0), ("b", NO_ID, 0): (400, 0)}


@pytest.mark.parametrize("size", [500, 3 << 20], ids=["small", "cut through"])
def test_records_whose_response_has_not_come_count_at_the_end(size: int) -> None:
    """The broker may have them. Ended twice, they count once."""
    traffic = Traffic(topic_partitions=True)
    sent = produce(1, size=size)
    story = Playbook(new_relay(traffic=traffic)).client(*chunks(sent, 1 << 20))
    story.relay.end()
    story.relay.end()
    (topic,) = read_frame(request_type(PRODUCE, 7), sent).topic_data
    assert counted(traffic.partitions) == {(TOPIC, NO_ID, 0): (len(topic.partition_data[0].records), 0)}


@pytest.mark.parametrize("size", [500, 3 << 20], ids=["small", "cut through"])
def test_records_without_a_response_count_when_they_are_sent(size: int) -> None:
    traffic = Traffic(topic_partitions=True)
    sent = produce(1, size=size, acks=0)
    Playbook(new_relay(traffic=traffic)).client(*chunks(sent, 1 << 20))
    (topic,) = read_frame(request_type(PRODUCE, 7), sent).topic_data
    assert counted(traffic.partitions) == {(TOPIC, NO_ID, 0): (len(topic.partition_data[0].records), 0)}


def test_a_connection_counts_under_one_client_at_a_time() -> None:
    """Clients without a connection may lose their count to new ones."""
    traffic = Traffic()
    story = Playbook(new_relay(traffic=traffic))
    story.client(produce(1, client_id="a") + produce(2, client_id="b") + produce(3, client_id="b"))
    connections = {client_id: counters.connections for (_, client_id), counters in traffic.clients.items()}
    assert connections == {"": 0, "a": 0, "b": 1}
    story.relay.end()
    assert {counters.connections for counters in traffic.clients.values()} == {0}
