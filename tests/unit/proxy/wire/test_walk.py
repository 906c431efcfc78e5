"""The walk, on Produce requests (which want items) and Fetch responses (which have records)."""

from dataclasses import replace

import pytest

from proxy.wire.cursor import NO_ID
from proxy.wire.errors import Malformed, Short
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView
from tests.support.messages.exchanges import TOPIC, fetch_response, produce
from tests.support.messages.kio_messages import read_frame, request_frame, request_type, response_frame
from tests.support.messages.reading import (
    PORTS,
    api_of,
    items_of,
    read_request,
    read_response,
    request_view,
    start_response,
)

SIZES = [[7, 0, 300], [], [1]]


def produce_request(version: int = 7) -> bytes:
    """Three topics with partitions of these sizes."""
    request = read_frame(request_type(0, version), produce(1, version=version, size=200))
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    topics = tuple(
        replace(
            topic,
            name=f"{TOPIC}-{at}",
            partition_data=tuple(
                replace(partition, index=index, records=bytes(size)) for index, size in enumerate(sizes)
            ),
        )
        for at, sizes in enumerate(SIZES)
    )
    return request_frame(replace(request, topic_data=topics))


ITEMS = [
    (f"{TOPIC}-{at}", NO_ID, index, size)
    for at, sizes in enumerate(SIZES)
    for index, size in enumerate(sizes)
]


@pytest.mark.parametrize("version", [3, 7, 9, 12])
def test_items_come_out_however_the_frame_is_split(version: int) -> None:
    frame = produce_request(version)
    for first in range(0, len(frame), 3):
        assert items_of(read_request([frame[:first], frame[first : first + 5], frame[first + 5 :]])) == ITEMS


def test_without_a_wish_for_items_nothing_past_the_head_is_read() -> None:
    frame = produce_request()
    view = read_request([frame[:40]], want_items=False)
    assert (view.items, view.cursor.done) == ([], True)


@pytest.mark.parametrize("version", [7, 9])
def test_a_whole_frame_that_ends_early_is_short(version: int) -> None:
    frame = produce_request(version)
    for size in range(20, len(frame) - tags_at_the_end(version)):
        with pytest.raises(Short):
            read_request([frame[:size]])


@pytest.mark.parametrize("version", [7, 9])
@pytest.mark.parametrize("step", [1, 7, 50])
def test_a_partial_frame_is_read_on_from_its_mark(version: int, step: int) -> None:
    """Each time from the start of the step that was not all there; what is behind can be let go."""
    frame = produce_request(version)
    api = api_of(0)
    body = read_body_offset(frame, version)
    reader = Reader([frame[:body]], body)
    view = RequestView(
        0, version, 1, "client", len(frame) - 4, flexible=version >= api.flexible_from, want_items=True
    )
    view.partial = True
    marks = []
    for at in range(body, len(frame), step):
        if view.cursor.mark is not None:
            reader.back_to(view.cursor.mark)
            reader.release()
            view.cursor.mark = reader.mark()
        reader.pieces.append(frame[at : at + step])
        try:
            api.read_request(reader, view)
        except Short:
            assert not view.cursor.done
        assert view.cursor.mark is not None
        marks.append(view.cursor.mark.base + view.cursor.mark.pos)
        assert marks[-1] <= at + step
    assert view.cursor.done
    assert items_of(view) == ITEMS
    assert marks == sorted(marks)


def tags_at_the_end(version: int) -> int:
    """A request's last tags, which nobody reads."""
    return 1 if version >= 9 else 0


def read_body_offset(frame: bytes, version: int) -> int:
    return 4 + 8 + 2 + len("client") + (1 if version >= 9 else 0)


def test_records_are_skipped_as_they_come() -> None:
    """The mark moves with them: nothing of a batch is kept."""
    frame = response_frame(fetch_response(11, bytes(1000)))
    api = api_of(1)
    reader, view = start_response(api, 11, [frame[:300]], True)
    view.partial = True
    with pytest.raises(Short):
        api.read_response(reader, request_view(api, 11), view, PORTS)
    assert view.cursor.mark is not None
    assert view.cursor.mark.base + view.cursor.mark.pos == 300
    reader.release()
    assert reader.pieces == []


def test_a_whole_view_has_no_mark() -> None:
    assert read_request([produce_request()]).cursor.mark is None


def test_edits_before_the_mark_are_known() -> None:
    view = read_response(1, 11, [response_frame(fetch_response(11, b""))])
    assert view.cursor.marked_edits == 0


@pytest.mark.parametrize("size", [-2, -(2**31)])
def test_records_of_a_length_that_cannot_be(size: int) -> None:
    frame = produce(1, version=7, size=200)
    (topic,) = read_frame(request_type(0, 7), frame).topic_data
    length = len(topic.partition_data[0].records).to_bytes(4, "big")
    bad = frame.replace(length, size.to_bytes(4, "big", signed=True), 1)
    with pytest.raises(Malformed, match=str(size)):
        read_request([bad])
