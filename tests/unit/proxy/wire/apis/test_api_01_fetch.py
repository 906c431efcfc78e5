import uuid
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from proxy.wire.apis.api_01_fetch import has_every_item
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import Edit, i32
from proxy.wire.errors import Short
from proxy.wire.reader import Reader
from tests.support.messages.exchanges import (
    TOPIC,
    fetch,
    fetch_response,
    fetched,
    fetched_records,
    record_batch,
)
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    read_frame,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.old_messages import fetch_request as old_request
from tests.support.messages.old_messages import fetch_response as old_response
from tests.support.messages.reading import (
    PORTS,
    announce,
    api_of,
    edited,
    items_of,
    read_request,
    read_response,
    request_view,
    start_response,
)

VERSIONS = versions(1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_shows_what_bounds_its_response(version: int) -> None:
    frame = fetch(1, max_bytes=1234, min_bytes=567, version=version)
    view = read_request([frame])
    assert (view.max_bytes, view.min_bytes, view.replica_id, view.acks) == (1234, 567, -1, 1)
    view.edits[:] = [
        Edit(view.min_bytes_at, view.min_bytes_at + 4, i32(1)),
        Edit(view.max_bytes_at, view.max_bytes_at + 4, i32(2)),
    ]
    assert edited([frame], view) == fetch(1, max_bytes=2, min_bytes=1, version=version)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_v3_there_is_no_bound_for_all(version: int) -> None:
    view = read_request([old_request(version, 1, {"a": {0: 5000, 1: 10}}, min_bytes=567)])
    assert (view.max_bytes, view.max_bytes_at, view.min_bytes) == (-1, -1, 567)


def test_v3_has_one_bound() -> None:
    view = read_request([old_request(3, 1, {"a": {0: 5000}}, max_bytes=8000)])
    assert view.max_bytes == 8000


@pytest.mark.parametrize("version", [0, 4, 15])
def test_a_request_that_ends_early_is_short(version: int) -> None:
    frame = old_request(0, 1, {"a": {0: 1}}) if version == 0 else fetch(1, version=version)
    view = read_request([frame])
    read = (view.min_bytes_at if version == 0 else view.max_bytes_at) + 4
    for size in range(20, read):
        with pytest.raises(Short):
            read_request([frame[:size]])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_shows_its_wait_and_size(version: int) -> None:
    frame = fetched(1, size=500, throttle_ms=1234, version=version)
    for want_items in (False, True):
        view = read_response(1, version, [frame], want_items)
        assert (view.throttle_time_ms, view.body_size) == (1234, 496)
        announce(view, 99)
        assert edited([frame], view) == fetched(1, size=500, throttle_ms=99, version=version)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_oldest_responses(version: int) -> None:
    frame = old_response(version, 1, {"a": {0: bytes(70), 3: b""}, "b": {1: b"x"}}, throttle_ms=77)
    view = read_response(1, version, [frame])
    assert items_of(view) == [("a", NO_ID, 0, 70), ("b", NO_ID, 1, 1)]
    assert (view.throttle_at, view.throttle_time_ms) == ((-1, 0) if version == 0 else (8, 77))


@pytest.mark.parametrize("size", [70, 300, 20_000])
@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_measured_by_partition(version: int, size: int) -> None:
    """Also if the length is a varint of two or three bytes: a wrong one leads to a byte that looks right."""
    response = fetch_response(version, bytes(size))
    (topic,) = response.responses
    (partition,) = topic.partitions
    aborted = type(partition).__annotations__["aborted_transactions"].__args__[0].__args__[0]
    more = replace(
        partition,
        partition_index=9,
        aborted_transactions=(aborted(producer_id=1, first_offset=2), aborted(producer_id=3, first_offset=4)),
    )
    empty = replace(partition, partition_index=8, records=None, aborted_transactions=())
    topic_id = uuid.uuid4()
    name, id_ = (TOPIC, NO_ID) if version < 13 else ("", topic_id.bytes)
    topic = replace(topic, partitions=(partition, more, empty))
    if version >= 13:
        topic = replace(topic, topic_id=topic_id)
    view = read_response(1, version, [response_frame(replace(response, responses=(topic,)))])
    assert items_of(view) == [(name, id_, 0, size), (name, id_, 9, size)]


@pytest.mark.parametrize("version", [4, 7, 15])
def test_without_a_wish_for_items_only_the_head_is_read(version: int) -> None:
    frame = response_frame(fetch_response(version, bytes(70)))
    view = read_response(1, version, [frame[:30]], want_items=False)
    assert (view.cursor.done, view.items) == (True, [])


@pytest.mark.parametrize("version", [16, 17, 18])
@pytest.mark.parametrize("want_items", [False, True])
def test_a_new_leaders_address_is_the_proxys(version: int, want_items: bool) -> None:
    response = fetch_response(version, bytes(70))
    node = type(response).__annotations__["node_endpoints"].__args__[0]
    response = replace(response, node_endpoints=(node(node_id=2, host=BROKER_HOST, port=9092, rack=None),))
    frame = response_frame(response)
    view = read_response(1, version, [frame], want_items)
    assert len(view.items) == int(want_items)
    assert read_frame(type(response), edited([frame], view)) == through_proxy(response)
    hidden = read_response(1, version, [frame], want_items, length_sent=True)
    assert BROKER_HOST.encode() not in edited([frame], hidden)
    assert len(edited([frame], hidden)) == len(frame)


LARGE = 3 << 20
"""Bytes of records whose length is a varint of four bytes."""
PARTS = [
    record_batch(61) + record_batch(100),
    record_batch(61),
    record_batch(70) + record_batch(300)[:200],
    b"",
    record_batch(20_000),
    record_batch(80),
    record_batch(LARGE),
    record_batch(80)[:50],
]
WHOLE = [161, 61, 70, 0, 20_000, 80, LARGE, 0]
"""The bytes of these records that are whole batches."""


def fetched_unusual(version: int, parts: list[bytes], unusual: str) -> bytes:
    """A response with these records, whose second partition has an error or an aborted transaction."""
    message = read_frame(response_type(1, version), fetched_records(version, parts))
    (topic,) = message.responses
    first, second, *others = topic.partitions
    if unusual == "error":
        second = replace(second, error_code=ErrorCode.topic_authorization_failed)
    elif unusual == "aborted":
        aborted = type(second).__annotations__["aborted_transactions"].__args__[0].__args__[0]
        second = replace(second, aborted_transactions=(aborted(producer_id=1, first_offset=2),))
    topic = replace(topic, partitions=(first, second, *others))
    return response_frame(replace(message, responses=(topic,)), 1)


@pytest.mark.parametrize("version", [11, 12, 15])
@pytest.mark.parametrize("unusual", ["", "error", "aborted"])
@pytest.mark.parametrize("whole_batches", [False, True])
@pytest.mark.parametrize("step", [1000, 8 << 20])
def test_partitions_are_read_however_unusual_and_split_they_are(
    version: int, unusual: str, whole_batches: bool, step: int
) -> None:
    frame = fetched_unusual(version, PARTS, unusual)
    pieces = [frame[at : at + step] for at in range(0, len(frame), step)]
    api = api_of(1)
    request = request_view(api, version)
    request.bounded = whole_batches
    reader, view = start_response(api, version, pieces, want_items=True)
    api.read_response(reader, request, view, PORTS)
    assert view.cursor.done
    sizes = WHOLE if whole_batches else [len(part) for part in PARTS]
    assert [(item.partition, item.size) for item in view.items] == [
        (partition, size) for partition, size in enumerate(sizes) if size > 0
    ]
    errors = [(error.error_code, error.times) for error in view.errors or []]
    assert errors == ([(29, 1)] if unusual == "error" else [])
    if whole_batches:
        (topic,) = read_frame(response_type(1, version), edited(pieces, view)).responses
        assert [len(each.records or b"") for each in topic.partitions] == sizes


@pytest.mark.parametrize("version", VERSIONS)
def test_a_part_of_a_response_has_every_item_from_the_last_records_on(version: int) -> None:
    frame = fetched_records(version, [b"ab", b"", b"cde"])
    request = request_view(api_of(1), version)
    records_at = frame.index(b"cde")
    for size in range(12, len(frame)):
        reader = Reader([frame[:size]], 8)
        assert has_every_item(reader, request) == (size >= records_at)
        assert reader.offset == 8
