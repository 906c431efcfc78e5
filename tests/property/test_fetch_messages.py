"""FetchRequest and FetchResponse taken apart and put together agree with kio, at every version."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import FETCH
from proxy.wire.edit import Edit, i32
from proxy.wire.errors import Malformed
from proxy.wire.fetch.request import with_max_bytes, write_topics
from proxy.wire.fetch.rewrite import (
    FetchRewrite,
    Watermarks,
    empty_partition,
    fetch_response,
    write_partitions,
)
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.random_messages import messages
from tests.support.messages.reading import edited, read_fetch, read_request, read_response
from tests.support.messages.requests import build, part

MASK = 0x5A5A5A5A
FEW = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
each_version = pytest.mark.parametrize("version", versions(FETCH))


def topic_key(topic: Any) -> bytes:
    key: bytes
    if getattr(topic, "topic_id", None) is not None:
        key = topic.topic_id.bytes
    else:
        key = b"" if hasattr(topic, "topic_id") else topic.topic.encode()
    return key


def known_topics(message: Any, of: str) -> Any:
    """Without null topic ids, which kio tells from no id at all."""
    kept = [topic for topic in getattr(message, of) if getattr(topic, "topic_id", 1) is not None]
    return replace(message, **{of: tuple(kept)})


def some_request(data: st.DataObject, version: int) -> Any:
    request = known_topics(data.draw(messages(request_type(FETCH, version)), label="request"), "topics")
    return known_topics(request, "forgotten_topics_data") if version >= 7 else request


@each_version
@FEW
@given(data=st.data())
def test_a_request_is_read_whole(version: int, data: st.DataObject) -> None:
    request = some_request(data, version)
    fetch = read_fetch(request_frame(request))
    assert [
        (entry.topic, entry.partition, entry.leader_epoch, entry.fetch_offset, entry.max_bytes)
        for entry in fetch.entries
    ] == [
        (
            topic_key(topic),
            partition.partition,
            getattr(partition, "current_leader_epoch", -1),
            partition.fetch_offset,
            partition.partition_max_bytes,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    assert fetch.forgotten == [
        (topic_key(topic), partition)
        for topic in getattr(request, "forgotten_topics_data", ())
        for partition in topic.partitions
    ]
    session = getattr(request, "session_id", 0), getattr(request, "session_epoch", -1)
    assert (fetch.session_id, fetch.session_epoch) == session
    if version >= 15:
        assert fetch.replica_id == request.replica_state.replica_id


@each_version
@FEW
@given(data=st.data())
def test_what_is_written_is_what_the_broker_reads(version: int, data: st.DataObject) -> None:
    """The last entry stays in with other max bytes, the others are forgotten."""
    request = some_request(data, version)
    frame = request_frame(request)
    fetch = read_fetch(frame)
    entries: dict[bytes, list[bytes]] = {}
    forgotten: dict[bytes, list[bytes]] = {}
    for entry in fetch.entries[:-1]:
        forgotten.setdefault(entry.topic, []).append(i32(entry.partition))
    for entry in fetch.entries[-1:]:
        entries[entry.topic] = [with_max_bytes(entry.raw, version, 4321)]
    view = read_request([frame])
    view.edits[:] = [Edit(fetch.topics_at, fetch.topics_end, write_topics(version, entries, forgotten))]
    changed = read_frame(type(request), edited([frame], view))
    assert [(topic_key(topic), partition) for topic in changed.topics for partition in topic.partitions] == [
        (topic_key(topic), replace(partition, partition_max_bytes=4321))
        for topic in request.topics
        for partition in topic.partitions
    ][-1:]
    if version >= 7:
        assert sum(len(topic.partitions) for topic in changed.forgotten_topics_data) == len(
            fetch.entries[:-1]
        )
        assert changed.session_epoch == request.session_epoch
    same = {field.name for field in fields(request) if field.name not in ("topics", "forgotten_topics_data")}
    assert all(getattr(changed, name) == getattr(request, name) for name in same)


@each_version
@FEW
@given(data=st.data(), cut=st.integers(0, 200))
def test_a_request_that_ends_early_is_malformed(version: int, data: st.DataObject, cut: int) -> None:
    request = some_request(data, version)
    frame = request_frame(request)
    start = read_fetch(frame).topics_at
    if start + cut < len(frame):
        with pytest.raises(Malformed):
            read_fetch(frame[: start + cut])


def marks_of(partition: Any) -> tuple[int, int, int]:
    return (
        partition.high_watermark,
        partition.last_stable_offset,
        getattr(partition, "log_start_offset", -1),
    )


def as_marks(marks: Watermarks) -> tuple[int, int, int]:
    return marks.high_watermark, marks.last_stable_offset, marks.log_start_offset


@each_version
@FEW
@given(data=st.data())
def test_a_response_tells_the_watermarks_and_takes_a_session_id_and_partitions(
    version: int, data: st.DataObject
) -> None:
    response = data.draw(messages(response_type(FETCH, version)), label="response")
    response = known_topics(response, "responses")
    if data.draw(st.booleans(), label="fine") and version >= 7:
        response = replace(response, error_code=ErrorCode.none)
    rewrite = FetchRewrite(version)
    rewrite.session_mask = MASK
    wanted: dict[tuple[bytes, int], Watermarks] = {}
    told: dict[tuple[bytes, int], tuple[int, int, int]] = {}
    for topic in response.responses:
        for partition in topic.partitions:
            marks = rewrite.watched.setdefault(topic_key(topic), {}).setdefault(
                partition.partition_index, Watermarks()
            )
            wanted[topic_key(topic), partition.partition_index] = marks
            if partition.error_code == ErrorCode.none:
                told[topic_key(topic), partition.partition_index] = marks_of(partition)
    topic_id = b"i" * 16
    name = topic_id if version >= 13 else "näme".encode()
    rewrite.added = write_partitions(version, {name: [empty_partition(version, 5, (70, 60, 50))]})
    rewrite.added_topics = 1

    frame = response_frame(response)
    view = read_response(FETCH, version, [frame], True, fetch_rewrite=rewrite)
    read = read_frame(type(response), edited([frame], view))
    added = view.body_size - read_response(FETCH, version, [frame]).body_size
    for key, offsets in told.items():
        assert as_marks(wanted[key]) == offsets
    assert all(as_marks(wanted[key]) == (-1, -1, -1) for key in wanted.keys() - told.keys())
    expected = through_proxy(response)
    if version >= 7:
        assert (rewrite.error_code, rewrite.session_id) == (response.error_code, response.session_id)
        masked = response.session_id ^ MASK if response.session_id else 0
        masked -= (masked >> 31 & 1) << 32 if masked > 0 else 0
        expected = replace(expected, session_id=masked)
    if response.responses and getattr(response, "error_code", 0) == 0:
        (first, *others) = read.responses
        (empty,) = first.partitions
        assert added == len(rewrite.added)
        assert (empty.partition_index, empty.error_code, marks_of(empty)[:2]) == (5, 0, (70, 60))
        assert (empty.records, empty.aborted_transactions) == (b"", None)
        assert getattr(empty, "log_start_offset", 50) == 50
        assert topic_key(first) == name
        assert getattr(empty, "preferred_read_replica", -1) == -1
        read = replace(read, responses=tuple(others))
    else:
        assert added == 0
    assert read == expected


@each_version
def test_a_response_of_our_own(version: int) -> None:
    name = b"i" * 16 if version >= 13 else b"orders"
    written = write_partitions(
        version, {name: [empty_partition(version, index, (7, -1, -1)) for index in (1, 2)]}
    )
    frame = fetch_response(
        version, 99, error_code=71, session_id=123, throttle_time_ms=456, topics=1, written=written
    )
    read = read_frame(response_type(FETCH, version), frame)
    assert frame[4:8] == (99).to_bytes(4, "big")
    assert read.throttle_time == milliseconds(456)
    if version >= 7:
        assert (read.error_code, read.session_id) == (71, 123)
    assert [partition.partition_index for topic in read.responses for partition in topic.partitions] == [1, 2]
    assert read_frame(response_type(FETCH, version), fetch_response(version, 1)).responses == ()


@pytest.mark.parametrize("version", range(12, 19))
def test_tags_of_a_partition_survive(version: int) -> None:
    request = request_type(FETCH, version)
    partition = part(
        request, "FetchPartition", partition=1, fetch_offset=2, log_start_offset=3, partition_max_bytes=4
    )
    assert build(type(partition), **vars_of(partition)) == partition
    topic = part(request, "FetchTopic", topic="t", topic_id=None, partitions=(partition,))
    frame = request_frame(
        build(
            request,
            max_wait=milliseconds(1),
            min_bytes=1,
            max_bytes=1,
            topics=(topic,),
            forgotten_topics_data=(),
        )
    )
    (entry,) = read_fetch(frame).entries
    # The entry's tag section, empty here, becomes one with a field that nobody knows.
    unknown = entry.raw[:-1] + b"\1\x63\2hi"
    frame = frame.replace(entry.raw, unknown)
    (entry,) = read_fetch(frame).entries
    assert entry.raw == unknown
    assert with_max_bytes(entry.raw, version, 9) == unknown.replace(i32(4) + b"\1", i32(9) + b"\1")


def vars_of(entity: Any) -> dict[str, Any]:
    return {field.name: getattr(entity, field.name) for field in fields(entity)}
