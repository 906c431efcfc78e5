"""Cuts rejected partitions out of a Produce request, and adds them to the broker's response.

ProduceRequest and ProduceResponse v0-13. This file parses both messages a second time, so that messages
without rejected partitions do not pay for it.
"""

from typing import Final, final

from proxy.wire.addresses import Addresses
from proxy.wire.apis.api_00_produce import TOPIC_ID_FROM, ProduceResponse
from proxy.wire.edit import NO_TAGS, Edit, count, i16, i32, insert, raw_string, string
from proxy.wire.reader import Reader
from proxy.wire.views import Item, RequestView, ResponseView

_NO_OFFSET: Final = b"\xff" * 8
_NULL: Final = b"\0"
"""A compact string that is null."""


@final
class Rejection:
    """The rejected partitions of a request, with the errors and messages for the producer."""

    __slots__ = ("error_code", "items", "messages")

    def __init__(self, items: list[Item], error_code: int, messages: dict[int, str]) -> None:
        self.items: Final = items
        self.error_code: Final = error_code
        """The error of the items that have no error_code of their own."""
        self.messages: Final = messages
        """The error messages by error code, for v8 and later; an error without an entry has no message."""


def cut(pieces: list[bytes], body_at: int, version: int, flexible: bool, rejected: list[int]) -> list[Edit]:
    """Return the edits that cut partitions out of a Produce request. The frame is whole.

    The body begins at `body_at`. `rejected` are indexes into the request's partitions. A topic that
    keeps no partition is cut out too.
    """
    reader = Reader(pieces, body_at)
    if version >= 3:
        reader.skip_string(flexible)  # transactional_id
    reader.take(6)  # acks, timeout_ms
    topics_at = reader.offset
    topics = reader.count(flexible)
    topics_end = reader.offset
    gone = frozenset(rejected)
    edits: list[Edit] = []
    place = kept = 0
    for _ in range(topics):
        start = reader.offset
        _read_name(reader, version, flexible)
        count_at = reader.offset
        partitions = reader.count(flexible)
        count_end = reader.offset
        cuts = _cut_partitions(reader, partitions, flexible, place, gone)
        place += partitions
        if cuts and len(cuts) == partitions:
            edits.append(Edit(start, reader.offset, b""))
            continue
        kept += 1
        if cuts:
            edits.append(Edit(count_at, count_end, count(partitions - len(cuts), flexible)))
            edits.extend(cuts)
    if kept < topics:
        edits.insert(0, Edit(topics_at, topics_end, count(kept, flexible)))
    return edits


def _cut_partitions(
    reader: Reader, partitions: int, flexible: bool, place: int, gone: frozenset[int]
) -> list[Edit]:
    """Read a topic's partitions, the first of which has this place, and its tags."""
    cuts: list[Edit] = []
    for _ in range(partitions):
        start = reader.offset
        reader.take(4)  # index
        reader.skip(reader.bytes_length(flexible))
        if flexible:
            reader.skip_tags()
        if place in gone:
            cuts.append(Edit(start, reader.offset, b""))
        place += 1
    if flexible:
        reader.skip_tags()
    return cuts


def restore(pieces: list[bytes], body_at: int, view: ResponseView, rejection: Rejection) -> None:
    """Add edits to the view that insert the rejected partitions into the broker's response.

    A partition is inserted into its topic if the response has the topic, so that no topic appears twice. Call
    it before the tail is edited.
    """
    version = view.api_version
    flexible = view.flexible
    by_topic = _by_topic(rejection, version)
    reader = Reader(pieces, body_at)
    topics_at = reader.offset
    topics = reader.count(flexible)
    topics_end = reader.offset
    response = ProduceResponse(Addresses())
    scratch = ResponseView(version, flexible, 0)
    for _ in range(topics):
        items = by_topic.pop(_read_name(reader, version, flexible), None)
        count_at = reader.offset
        partitions = reader.count(flexible)
        if items is not None:
            insert(view.edits, Edit(count_at, reader.offset, count(partitions + len(items), flexible)))
        for _ in range(partitions):
            reader.take(4)  # index
            response.read_partition(reader, scratch)
            if flexible:
                reader.skip_tags()
        if items is not None:
            told = _partitions(items, version, flexible, rejection)
            insert(view.edits, Edit(reader.offset, reader.offset, told))
        if flexible:
            reader.skip_tags()
    if by_topic:
        insert(view.edits, Edit(topics_at, topics_end, count(topics + len(by_topic), flexible)))
        told = _topics(by_topic, version, flexible, rejection)
        insert(view.edits, Edit(reader.offset, reader.offset, told))


def local_response(view: RequestView, rejection: Rejection, throttle_time_ms: int) -> bytes:
    """Return the frame of the response to a request whose partitions are all rejected."""
    version = view.api_version
    flexible = view.flexible
    by_topic = _by_topic(rejection, version)
    head = i32(view.correlation_id) + (NO_TAGS if flexible else b"") + count(len(by_topic), flexible)
    tail = (i32(throttle_time_ms) if version >= 1 else b"") + (NO_TAGS if flexible else b"")
    body = head + _topics(by_topic, version, flexible, rejection) + tail
    return i32(len(body)) + body


def _read_name(reader: Reader, version: int, flexible: bool) -> bytes:
    """Read a topic's id, or its name in UTF-8."""
    return reader.uuid() if version >= TOPIC_ID_FROM else reader.raw_string(flexible)


def _name(name: bytes, version: int, flexible: bool) -> bytes:
    return name if version >= TOPIC_ID_FROM else raw_string(name, flexible)


def _by_topic(rejection: Rejection, version: int) -> dict[bytes, list[Item]]:
    """Group the items by topic: by id in versions with ids, where an item may have a name too."""
    by_topic: dict[bytes, list[Item]] = {}
    for item in rejection.items:
        name = item.topic_id if version >= TOPIC_ID_FROM else item.topic.encode()
        by_topic.setdefault(name, []).append(item)
    return by_topic


def _topics(by_topic: dict[bytes, list[Item]], version: int, flexible: bool, rejection: Rejection) -> bytes:
    parts: list[bytes] = []
    for name, items in by_topic.items():
        parts.append(_name(name, version, flexible) + count(len(items), flexible))
        parts.append(_partitions(items, version, flexible, rejection))
        if flexible:
            parts.append(NO_TAGS)
    return b"".join(parts)


def _partitions(items: list[Item], version: int, flexible: bool, rejection: Rejection) -> bytes:
    ends: dict[int, bytes] = {}
    parts: list[bytes] = []
    for item in items:
        error_code = rejection.error_code if item.error_code == 0 else item.error_code
        end = ends.get(error_code)
        if end is None:
            end = _result(error_code, rejection.messages.get(error_code), version, flexible)
            ends[error_code] = end
        parts.append(i32(item.partition) + end)
    return b"".join(parts)


def _result(error_code: int, text: str | None, version: int, flexible: bool) -> bytes:
    """Return a partition of the response, without its number."""
    end = i16(error_code) + _NO_OFFSET  # base_offset
    if version >= 2:
        end += _NO_OFFSET  # log_append_time_ms
    if version >= 5:
        end += _NO_OFFSET  # log_start_offset
    if version >= 8:
        end += count(0, flexible)  # record_errors
        end += _message(text, flexible)
    if flexible:
        end += NO_TAGS
    return end


def _message(text: str | None, flexible: bool) -> bytes:
    if text is None:
        return _NULL if flexible else i16(-1)
    return string(text, flexible)
