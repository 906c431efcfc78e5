"""Partitions taken out of Produce requests, and put into their responses: compared with kio, for every
version.
"""

import uuid
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from proxy.wire.api_keys import PRODUCE
from proxy.wire.apis.api import read_request_header
from proxy.wire.apis.rejected_partitions import Rejection, cut, local_response, restore
from proxy.wire.edit import LENGTH_SIZE, Edit, apply, i32, insert, with_length
from proxy.wire.reader import Reader
from tests.support.messages.exchanges import produce, produced
from tests.support.messages.kio_messages import (
    has_address,
    parts_of,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.random_messages import messages
from tests.support.messages.reading import read_request, read_response

FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
every_version = pytest.mark.parametrize("version", versions(PRODUCE))
MESSAGE = "not now: ß"


def body_at(pieces: list[bytes], flexible: bool) -> int:
    reader = Reader(pieces, LENGTH_SIZE)
    read_request_header(reader)
    if flexible:
        reader.skip_tags()
    return reader.offset


def named_apart(topics: tuple[Any, ...]) -> tuple[Any, ...]:
    """The topics with names and ids of their own, as in every real message."""
    if topics and hasattr(topics[0], "topic_id"):
        return tuple(replace(topic, topic_id=uuid.UUID(int=at + 1)) for at, topic in enumerate(topics))
    return tuple(replace(topic, name=f"topic-{at}") for at, topic in enumerate(topics))


def some_request(data: DataObject, version: int) -> Any:
    request = data.draw(messages(request_type(PRODUCE, version)), label="request")
    return replace(request, topic_data=named_apart(request.topic_data))


def split(data: DataObject, frame: bytes) -> list[bytes]:
    return parts_of(frame, data.draw(st.lists(st.integers(0, len(frame)), max_size=6), label="cuts"))


def without(request: Any, cut_places: list[int]) -> Any:
    place = 0
    topics = []
    for topic in request.topic_data:
        kept = []
        for partition in topic.partition_data:
            if place not in cut_places:
                kept.append(partition)
            place += 1
        if kept or not topic.partition_data:
            topics.append(replace(topic, partition_data=tuple(kept)))
    return replace(request, topic_data=tuple(topics))


@every_version
@FEW
@given(data=st.data())
def test_the_rest_of_a_request_goes_on(version: int, data: DataObject) -> None:
    request = some_request(data, version)
    frame = request_frame(request, 7, data.draw(st.none() | st.text(max_size=5)))
    pieces = [piece for piece in split(data, frame) if piece]
    view = read_request(pieces)
    cut_places = [place for place in range(len(view.items)) if data.draw(st.booleans())]
    edits = cut(pieces, body_at(pieces, view.flexible), version, view.flexible, cut_places)
    got = b"".join(apply(pieces, with_length(edits, len(frame) - LENGTH_SIZE)))
    assert read_frame(type(request), got) == without(request, cut_places)
    if not cut_places:
        assert edits == []


def told_of(response: Any) -> dict[tuple[str | UUID, int], Any]:
    """Every partition of a response: by topic and number, the error code and what else it says."""
    return {
        (getattr(topic, "name", None) or topic.topic_id, partition.index): partition
        for topic in response.responses
        for partition in topic.partition_responses
    }


@every_version
@FEW
@given(data=st.data())
def test_the_response_holds_all_partitions_and_no_topic_twice(version: int, data: DataObject) -> None:
    request = some_request(data, version)
    pieces = [request_frame(request, 1)]
    items = read_request(pieces).items
    response = data.draw(messages(response_type(PRODUCE, version)), label="response")
    known = list(request.topic_data)
    responses = [
        replace(topic, **name_of(known[at]))
        for at, topic in enumerate(response.responses)
        if at < len(known) and data.draw(st.booleans())
    ]
    response = replace(response, responses=tuple(responses))
    if has_address(response):
        response = replace(response, node_endpoints=())
    frame = [piece for piece in split(data, response_frame(response, 1)) if piece]
    view = read_response(PRODUCE, version, frame)
    rejection = Rejection(items, 19, {19: MESSAGE})
    if items:
        restore(frame, sum(map(len, frame)) - view.body_size, view, rejection)
    if view.throttle_at >= 0:
        insert(view.edits, Edit(view.throttle_at, view.throttle_at + 4, i32(77)))
    whole = b"".join(frame)
    got = read_frame(type(response), b"".join(apply([whole], with_length(view.edits, len(whole) - 4))))
    names = [getattr(topic, "name", None) or topic.topic_id for topic in got.responses]
    assert len(names) == len(set(names))
    assert getattr(got, "throttle_time", None) is None or got.throttle_time.total_seconds() == 0.077
    told = [partition for topic in got.responses for partition in topic.partition_responses]
    for topic in response.responses:
        for partition in topic.partition_responses:
            assert partition in told
    assert sum(len(topic.partition_responses) for topic in got.responses) == len(items) + sum(
        len(topic.partition_responses) for topic in response.responses
    )


def name_of(topic: Any) -> dict[str, str | UUID]:
    return {"topic_id": topic.topic_id} if hasattr(topic, "topic_id") else {"name": topic.name}


@every_version
@FEW
@given(data=st.data())
def test_a_response_of_our_own_says_so_of_each_partition(version: int, data: DataObject) -> None:
    request = some_request(data, version)
    view = read_request([request_frame(request, 7)])
    got = read_frame(
        response_type(PRODUCE, version), local_response(view, Rejection(view.items, 89, {89: MESSAGE}), 1500)
    )
    assert got.throttle_time.total_seconds() == 1.5
    wanted = [(name_of(of), part.index) for of in request.topic_data for part in of.partition_data]
    told = [(name_of(of), part.index) for of in got.responses for part in of.partition_responses]
    assert told == wanted
    for partition in told_of(got).values():
        assert partition.error_code.value == 89
        assert partition.base_offset == -1
        if version >= 8:
            assert (partition.error_message, partition.record_errors) == (MESSAGE, ())


def test_the_oldest_response_ends_with_its_topics() -> None:
    view = read_request([produce(1, version=0)])
    frame = [produced(1, version=0)]
    told = read_response(PRODUCE, 0, frame)
    other = read_request([produce(1, version=0)]).items
    other[0].topic = "another"
    restore(frame, len(frame[0]) - told.body_size, told, Rejection(other, 19, {19: ""}))
    got = b"".join(apply(frame, with_length(told.edits, len(frame[0]) - 4)))
    mine = local_response(view, Rejection(other, 19, {19: ""}), 0)
    assert got[12:].endswith(mine[12:])
    assert int.from_bytes(got[8:12], "big") == 2
    assert int.from_bytes(got[:4], "big") == len(got) - 4


@pytest.mark.parametrize("version", [8, 9])
def test_an_error_without_a_message_has_null(version: int) -> None:
    view = read_request([produce(1, version=version)])
    got = read_frame(response_type(PRODUCE, version), local_response(view, Rejection(view.items, 100, {}), 0))
    assert [(each.error_code.value, each.error_message) for each in told_of(got).values()] == [(100, None)]
