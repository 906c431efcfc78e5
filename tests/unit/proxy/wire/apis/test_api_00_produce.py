import uuid
from dataclasses import replace
from typing import Any

import kio.schema.produce.v10.response as v10
import kio.schema.produce.v13.request as v13
import kio.schema.produce.v13.response as v13_response
import pytest
from kio.schema.errors import ErrorCode

from proxy.wire.apis.api_00_produce import MAX_READ
from proxy.wire.cursor import NO_ID
from proxy.wire.errors import Malformed
from proxy.wire.long_names import MAX_TOPIC_NAME, digest
from tests.support.messages.exchanges import TOPIC, milliseconds, produce, produced
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    through_proxy,
)
from tests.support.messages.old_messages import produce_request, produce_response
from tests.support.messages.reading import announce, edited, items_of, read_request, read_response
from tests.support.messages.requests import build

BY_NAME = range(13)


def records_size(version: int) -> int:
    if version < 3:
        return 500 + 4 - len(produce_request(version, 1, "client", 1, {TOPIC: {0: b""}}))
    (topic,) = read_frame(request_type(0, version), produce(1, size=500, version=version)).topic_data
    return len(topic.partition_data[0].records)


@pytest.mark.parametrize("version", BY_NAME)
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_request_shows_its_acks_and_records(version: int, acks: int) -> None:
    frame = produce(1, size=500, version=version, acks=acks)
    view = read_request([frame])
    assert (view.api_key, view.api_version, view.size, view.acks) == (0, version, 500, acks)
    assert items_of(view) == [(TOPIC, NO_ID, 0, records_size(version))]
    assert view.edits == []


@pytest.mark.parametrize("version", [3, 9, 12])
@pytest.mark.parametrize("size", [MAX_TOPIC_NAME, MAX_TOPIC_NAME + 1, 30_000])
def test_a_name_that_is_too_long_for_a_topic_is_not_kept(version: int, size: int) -> None:
    request = read_frame(request_type(0, version), produce(1, size=500, version=version))
    (topic,) = request.topic_data
    name = "n" * size
    sent = replace(request, topic_data=(replace(topic, name=name), replace(topic, name="")))
    long, empty = read_request([request_frame(sent)]).items
    assert long.topic == (name if size <= MAX_TOPIC_NAME else digest(name.encode()))
    assert empty.topic == ""


@pytest.mark.parametrize("version", [0, 2])
def test_the_oldest_requests_with_many_partitions(version: int) -> None:
    topics = {"a": {0: b"x" * 10, 5: b""}, "b": {}, "c": {1: b"y"}}
    view = read_request([produce_request(version, 1, None, 1, topics)])
    assert view.client_id == ""
    assert items_of(view) == [("a", NO_ID, 0, 10), ("a", NO_ID, 5, 0), ("c", NO_ID, 1, 1)]


def test_v13_names_topics_by_id() -> None:
    topic_id = uuid.uuid4()
    partitions = tuple(
        build(v13.PartitionProduceData, index=index, records=records)
        for index, records in ((0, None), (2, b"abc"), (3, bytes(300)), (4, bytes(20_000)))
    )
    request = build(
        v13.ProduceRequest,
        transactional_id="t" * 200,
        acks=-1,
        timeout=milliseconds(1),
        topic_data=(v13.TopicProduceData(topic_id=topic_id, partition_data=partitions),),
    )
    assert items_of(read_request([request_frame(request)])) == [
        ("", topic_id.bytes, 0, 0),
        ("", topic_id.bytes, 2, 3),
        ("", topic_id.bytes, 3, 300),
        ("", topic_id.bytes, 4, 20_000),
    ]


@pytest.mark.parametrize("version", BY_NAME)
def test_a_response_shows_its_wait_if_it_has_one(version: int) -> None:
    frame = produced(1, throttle_ms=1234, version=version)
    view = read_response(0, version, [frame])
    if version == 0:
        assert view.throttle_at == -1
    else:
        assert view.throttle_time_ms == 1234
        announce(view, 5678)
        assert edited([frame], view) == produced(1, throttle_ms=5678, version=version)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(("error_code", "items"), [(0, []), (6, [("a", 0, 6), ("a", 1, 6), ("b", 2, 6)])])
def test_the_items_of_a_response_are_the_partitions_with_an_error(
    version: int, error_code: int, items: list[tuple[str, int, int]]
) -> None:
    topics = {"a": {0: 5, 1: 6}, "b": {2: 7}}
    frame = produce_response(version, 1, topics, throttle_ms=9, error_code=error_code)
    view = read_response(0, version, [frame])
    assert [(item.topic, item.partition, item.error_code) for item in view.items] == items
    assert view.throttle_time_ms == (9 if version else 0)


@pytest.mark.parametrize("version", [8, 9])
def test_record_errors_are_stepped_over(version: int) -> None:
    message = response_type(0, version)
    topic = message.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partition_responses"].__args__[0]
    error = partition.__annotations__["record_errors"].__args__[0]
    errors = (
        error(batch_index=0, batch_index_error_message=None),
        error(batch_index=1, batch_index_error_message="why"),
    )
    part = partition(
        index=0, error_code=ErrorCode.none, base_offset=0, record_errors=errors, error_message="message"
    )
    response = message(
        responses=(topic(name=TOPIC, partition_responses=(part, part)),), throttle_time=milliseconds(77)
    )
    assert read_response(0, version, [response_frame(response)]).throttle_time_ms == 77


@pytest.mark.parametrize("module", [v10, v13_response])
def test_a_new_leaders_address_is_the_proxys(module: Any) -> None:
    leader = module.LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    partition = module.PartitionProduceResponse(
        index=0, error_code=ErrorCode(6), base_offset=-1, record_errors=(), current_leader=leader
    )
    name = {"name": TOPIC} if module is v10 else {"topic_id": None}
    response = module.ProduceResponse(
        responses=(module.TopicProduceResponse(partition_responses=(partition,), **name),),
        node_endpoints=(module.NodeEndpoint(node_id=2, host=BROKER_HOST, port=9092, rack="r"),),
    )
    frame = response_frame(response)
    view = read_response(0, response.__version__, [frame])
    assert read_frame(type(response), edited([frame], view)) == through_proxy(response)
    hidden = read_response(0, response.__version__, [frame], length_sent=True)
    assert BROKER_HOST.encode() not in edited([frame], hidden)
    assert len(edited([frame], hidden)) == len(frame)


def many(topics: int, partitions: int, version: int) -> bytes:
    of = {name: dict.fromkeys(range(partitions), b"") for name in map(str, range(topics))}
    (template,) = read_frame(request_type(0, version), produce(1, version=version)).topic_data
    data = tuple(
        replace(
            template,
            name=name,
            partition_data=tuple(
                replace(template.partition_data[0], index=each, records=b"") for each in numbers
            ),
        )
        for name, numbers in of.items()
    )
    request = read_frame(request_type(0, version), produce(1, version=version))
    return request_frame(replace(request, topic_data=data), 1)


@pytest.mark.parametrize("version", [8, 9, 12])
@pytest.mark.parametrize(
    ("topics", "partitions"), [(MAX_READ + 1, 0), (1, MAX_READ + 1), (2, MAX_READ // 2 + 1)]
)
def test_a_request_of_very_many_topics_or_partitions_is_not_read(
    version: int, topics: int, partitions: int
) -> None:
    with pytest.raises(Malformed):
        read_request([many(topics, partitions, version)])


def test_as_many_as_the_bound_are_read() -> None:
    assert len(read_request([many(2, MAX_READ // 2, 9)]).items) == MAX_READ
    assert read_request([many(MAX_READ, 0, 9)]).items == []
