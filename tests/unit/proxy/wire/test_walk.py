"""The walk, on Produce requests (which want items) and Fetch responses (which have records)."""

from contextlib import suppress
from dataclasses import replace

import pytest

from proxy.wire.apis.api_00_produce import ProduceRequest
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import uvarint
from proxy.wire.errors import Malformed, Short
from proxy.wire.reader import Reader
from proxy.wire.views import UNKNOWN, Found, Item, RequestView, ResponseView
from proxy.wire.walk import read_usual_records
from tests.support.messages.exchanges import TOPIC, fetch_response, fetched_records, produce
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
    assert view.items_size == UNKNOWN, "the quotas take the items part by part"


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


def read_usual(view: ResponseView, topic: str, topic_id: bytes, partitions: list[tuple[int, int]]) -> None:
    """Read partitions, of which the numbers and the sizes are given, of one topic."""
    data = b"".join(
        number.to_bytes(4, "big") + uvarint(size + 1) + bytes(size) + b"\0" for number, size in partitions
    )
    view.cursor.topic, view.cursor.topic_id = topic, topic_id
    view.cursor.partitions_left = len(partitions)
    read_usual_records(ProduceRequest(), Reader([data], 0), view, 0)
    assert view.cursor.partitions_left == 0


@pytest.mark.parametrize(
    "before",
    [
        Item("t", NO_ID, 3, 700),
        Item("t", NO_ID, 4, 700),
        Item("u", NO_ID, 3, 700),
        Item("", bytes(range(16)), 3, 700),
        Item("t", NO_ID, 3, 700, b"a head"),
        Item("t", NO_ID, 3, 700, b"", 5),
    ],
    ids=["the same", "another partition", "another topic", "an id", "a head", "an error"],
)
def test_an_item_of_an_earlier_message_becomes_one_of_this_message(before: Item) -> None:
    before.found = found = Found()
    same = (before.topic, before.topic_id, before.partition) == ("t", NO_ID, 3)
    view = ResponseView(12, True, 100, True)
    view.items = [before]
    read_usual(view, "t", NO_ID, [(3, 900), (5, 200)])
    fields = [(i.topic, i.topic_id, i.partition, i.size, i.head, i.error_code) for i in view.items]
    assert fields == [("t", NO_ID, 3, 900, b"", 0), ("t", NO_ID, 5, 200, b"", 0)]
    assert view.items[0] is before
    assert before.found is (found if same else None)


@pytest.mark.parametrize(("topic", "topic_id"), [("t" * 8, NO_ID), ("", bytes(range(16)))])
def test_equal_names_and_ids_of_topics_stay_the_same_objects(topic: str, topic_id: bytes) -> None:
    """So the look-ups of quotas stay valid although the topic's name or id was read anew."""
    before = Item(topic, topic_id, 3, 700)
    before.found = found = Found()
    view = ResponseView(13, True, 100, True)
    view.items = [before]
    new = topic.encode().decode(), bytes(bytearray(topic_id))
    read_usual(view, *new, [(3, 900), (5, 200)])
    assert before.found is found
    assert all(item.topic is topic and item.topic_id is topic_id for item in view.items)


def test_an_item_with_an_id_loses_the_name_that_its_topic_had() -> None:
    topic_id = bytes(range(16))
    item = Item("t", topic_id, 3, 700)
    view = ResponseView(13, True, 100, True)
    view.items = [item]
    read_usual(view, "", topic_id, [(3, 900)])
    assert (item.topic, item.size) == ("", 900)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 16_384, (1 << 21) - 2])
def test_usual_records_have_a_length_of_one_to_three_bytes(size: int) -> None:
    view = ResponseView(12, True, 100, True)
    read_usual(view, "t", NO_ID, [(0, size), (1, 5)])
    assert [item.size for item in view.items] == [size, 5]


def test_longer_records_are_left_to_other_steps() -> None:
    view = ResponseView(12, True, 100, True)
    view.cursor.partitions_left = 1
    size = (1 << 21) - 1
    read_usual_records(
        ProduceRequest(), Reader([bytes(4) + uvarint(size + 1) + bytes(size) + b"\0"], 0), view, 0
    )
    assert (view.cursor.partitions_left, view.items) == (1, [])


@pytest.mark.parametrize("version", [3, 9])
def test_the_sizes_of_the_items_of_a_whole_message_are_added_up(version: int) -> None:
    view = read_request([produce_request(version)])
    assert view.items_size == sum(size for sizes in SIZES for size in sizes)
    assert view.topics == 3


@pytest.mark.parametrize("version", [3, 9])
def test_the_topics_of_a_message_are_counted(version: int) -> None:
    view = read_request([produce(3, version=version, size=200)])
    assert view.topics == 1


@pytest.mark.parametrize("version", [11, 12])
def test_only_the_last_item_of_a_frame_that_is_cut_through_is_there_before_its_records(version: int) -> None:
    frame = fetched_records(version, [b"ab", b"cde"])
    first_ends = frame.index(b"ab") + 2 + (1 if version >= 12 else 0)  # with its tagged fields
    second = frame.index(b"cde")
    for size in range(12, len(frame) + 1):
        reader, view = start_response(api_of(1), version, [frame[:size]], True)
        view.partial = True
        with suppress(Short):
            api_of(1).read_response(reader, request_view(api_of(1), version), view, PORTS)
        sizes = [2, 3] if size >= second else [2] if size >= first_ends else []
        assert [item.size for item in view.items] == sizes, size
