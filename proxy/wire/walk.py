"""Walk: reads a message of topics and partitions step by step, whole or while it arrives.

Produce, Fetch, ShareFetch and ShareAcknowledge share one shape: a head, an array of topics each with an array
of partitions, and a tail. Each partition may carry records, which are skipped. A step is read as a whole or
not at all. In a frame that is cut through, a step that has not arrived completely raises Short, and is read
again from its mark.
"""

from typing import Final, cast

from mypy_extensions import i64 as native

from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import HEAD, NO_ID, Cursor
from proxy.wire.errors import Malformed, Short
from proxy.wire.keyed.keyed_arrays import check_hashes, topic_hash
from proxy.wire.long_names import MAX_TOPIC_NAME, digest
from proxy.wire.reader import Reader, i32_at, text
from proxy.wire.records.batches import ends_with_batch
from proxy.wire.views import NO_HEAD, UNKNOWN, Item, ResponseView, View

TOPIC: Final = 1
PARTITION: Final = 2
RECORDS: Final = 3
AFTER_RECORDS: Final = 4
TAIL: Final = 5
"""The phases of a walk after HEAD, by what is read next."""
NUMBER_BYTES: Final[native] = 4
"""The size of a partition's number."""
LENGTH_BYTES: Final[native] = 3
"""The most bytes that the length of records of up to 2 MiB takes."""
SIZE_BITS: Final[native] = 21
"""The bits of such a length."""
SIZE_MASK: Final[native] = (1 << 21) - 1
NO_NUMBER: Final[native] = -1 << 40
"""The number of no partition: no message has one of more than 32 bits."""
NO_ITEM: Final = Item("", NO_ID, NO_NUMBER, 0)
"""An item of no partition."""


class Partitioned:
    """The parts of the shape that differ from one message to the next."""

    topic_id_from: int
    """The first version that names topics by id."""
    only_errors = False
    """Whether only partitions with an error become items."""
    only_records = False
    """Whether only partitions with records become items."""
    ends_with_records = True
    """Whether nothing but tagged fields follows a partition's records."""
    keeps_last_early = False
    """Whether, in a frame that is cut through, the item of the last partition is kept before its records have
    arrived: the quotas can then judge all items before any of these records is forwarded.
    """

    def read_head(self, reader: Reader, view: View) -> bool:
        """Read up to the topics and set the cursor's `topics_left`; return whether to read on."""
        raise NotImplementedError

    def read_partition(self, reader: Reader, view: View) -> int:
        """Read a partition after its number, up to its records, and return how many bytes of them follow."""
        raise NotImplementedError

    def read_whole_batches(self, reader: Reader, view: View) -> None:
        """Read a partition's records, and add edits that cut off a partial batch."""
        raise NotImplementedError

    def read_usual(self, reader: Reader, view: View) -> None:
        """Read the next partitions as long as they have the most frequent form, such as no error, in fewer
        steps than read_partition(), which reads the others. A message need not override it.
        """

    def read_after_records(self, reader: Reader, view: View) -> None:
        """Read what follows a partition's records."""
        if view.flexible:
            reader.skip_tags()

    def read_tail(self, reader: Reader, view: View) -> None:
        """Read what follows the topics."""


def walk(message: Partitioned, reader: Reader, view: View) -> None:
    """Read on from the end of the last call, until the end of the message or of the bytes (Short)."""
    cursor = view.cursor
    if cursor.phase == HEAD and not view.partial and not cursor.done:
        _walk_whole(message, reader, view, cursor)
        return
    while not cursor.done:
        if view.partial:
            _mark(reader, view)
        phase = cursor.phase
        if phase == PARTITION:
            _partition(message, reader, view, cursor)
        elif phase == RECORDS and view.whole_batches and not view.partial:
            message.read_whole_batches(reader, view)
            cursor.phase = AFTER_RECORDS
        elif phase == RECORDS:
            cursor.records_left = reader.skip_available(cursor.records_left)
            if cursor.records_left > 0:
                if view.partial:
                    _mark(reader, view)
                raise Short(f"{cursor.records_left} bytes of records are to come")
            cursor.phase = AFTER_RECORDS
        elif phase == AFTER_RECORDS:
            _after_records(message, reader, view, cursor)
        elif phase == TOPIC:
            _topic(message, reader, view, cursor)
        elif phase == HEAD:
            cursor.done = not message.read_head(reader, view)
            cursor.phase = TOPIC
        else:
            message.read_tail(reader, view)
            cursor.done = True


def _walk_whole(message: Partitioned, reader: Reader, view: View, cursor: Cursor) -> None:
    """Read a whole frame, as nearly all frames are. No step is read again, so none needs a mark."""
    reads_on = message.read_head(reader, view)
    view.items_size = 0
    cursor.phase = TOPIC
    while reads_on and cursor.topics_left > 0:
        _topic(message, reader, view, cursor)
        if cursor.done:
            return
        _all_partitions(message, reader, view, cursor)
    if reads_on:
        cursor.phase = TAIL
        message.read_tail(reader, view)
    cursor.done = True


def _begin_partition(message: Partitioned, reader: Reader, view: View, cursor: Cursor) -> None:
    """Read a partition up to its records."""
    cursor.partition = reader.i32()
    cursor.records_size = cursor.records_left = message.read_partition(reader, view)
    cursor.partitions_left -= 1


def _end_partition(message: Partitioned, view: View, cursor: Cursor) -> None:
    """Note what has been read of a partition."""
    error_code = cursor.error_code
    if error_code != 0:
        cast("ResponseView", view).note_error(error_code)
    size = cursor.records_size
    wanted = size > 0 if message.only_records else (error_code != 0 or not message.only_errors)
    if wanted and view.want_items:
        view.keep(_topic_of(cursor), cursor.topic_id, cursor.partition, size, cursor.head, error_code)
        if view.items_size != UNKNOWN:
            view.items_size += size


def _topic_of(cursor: Cursor) -> str:
    return cursor.topic if cursor.topic_size == 0 else topic_name(cursor)


def _usual_fields(data: bytes, start: native, end: native) -> bool:
    """Whether a Fetch partition's fields from `start` to `end` have no error and no aborted transactions."""
    error_code: native = data[start]
    low: native = data[start + 1]
    array: native = data[end - 5]
    return array <= 1 and (error_code | low) == 0


def _usual_length(data: bytes, at: native) -> native:
    """Return the offset of the records whose length is at `at`, shifted by SIZE_BITS, and their size; below 0
    if they have more than 2 MiB.
    """
    size: native = data[at]
    at += 1
    if size >= 0x80:
        second: native = data[at]
        at += 1
        size += (second << 7) - 0x80
        if second >= 0x80:
            third: native = data[at]
            at += 1
            size += (third << 14) - 0x4000
            if third >= 0x80:
                return -1
    if size > 0:  # 0 is null
        size -= 1
    return (at << SIZE_BITS) | size


def _usual_end(data: bytes, at: native) -> bool:
    tags: native = data[at]
    return tags == 0


def read_usual_records(message: Partitioned, reader: Reader, view: View, fields: native) -> None:
    """Read partitions of a flexible version that consist of their number, so many bytes of other fields,
    records and no tags, as far as they are in one piece. The other fields are those of a Fetch response:
    their error_code must be 0, and the array that begins with the fifth byte from their end be empty or null.
    """
    cursor = view.cursor
    data = reader.data
    end = reader.end
    at = reader.pos
    left = cursor.partitions_left
    batches = view.whole_batches
    keeps = view.want_items and left > 0
    keeps_all = not message.only_records
    items = view.items
    topic = _known_topic(cursor, items) if keeps else ""
    topic_id = cursor.topic_id
    kept_size: native = 0
    place = cursor.kept
    places: native = len(items)
    while left > 0:
        records_at = at + NUMBER_BYTES + fields
        if records_at + LENGTH_BYTES > end or (
            fields > 0 and not _usual_fields(data, at + NUMBER_BYTES, records_at)
        ):
            break
        usual = _usual_length(data, records_at)
        size = usual & SIZE_MASK
        records_at = usual >> SIZE_BITS
        next_at = records_at + size
        if usual < 0 or next_at >= end or not _usual_end(data, next_at):
            break
        if batches and size > 0:
            if not ends_with_batch(data, records_at, next_at):
                break
            cursor.any_batch = True
        if keeps and (size > 0 or keeps_all):
            partition = i32_at(data, at)
            item = items[place] if place < places else NO_ITEM
            place += 1
            kept_size += size
            same_topic = item.topic is topic
            if (
                item.partition == partition
                and (same_topic or not topic)
                and item.topic_id is topic_id
                and item.error_code == 0
                and len(item.head) == 0
            ):
                # Most messages have the same partition at this place as the last one: only its size differs.
                if not same_topic:
                    item.topic = topic
                item.size = size
            else:
                cursor.kept = place - 1
                view.keep(topic, topic_id, partition, size, NO_HEAD, 0)
        at = next_at + 1
        left -= 1
    if view.items_size != UNKNOWN:
        view.items_size += kept_size
    cursor.kept = place
    reader.pos = at
    cursor.partitions_left = left


def _known_topic(cursor: Cursor, items: list[Item]) -> str:
    """Return the topic's name, and note its id, as the objects that the next item of an earlier message has,
    if they are equal: most messages have the same topics in the same order, and objects are compared faster.
    """
    topic = _topic_of(cursor)
    if cursor.kept >= len(items):
        return topic
    item = items[cursor.kept]
    topic_id = item.topic_id
    if topic_id is not cursor.topic_id and topic_id == cursor.topic_id:
        cursor.topic_id = topic_id
    if item.topic is topic or item.topic != topic:
        return topic
    cursor.topic = item.topic
    return item.topic


def _name_topic(reader: Reader, view: View, cursor: Cursor) -> None:
    """Note where the topic's name is, without decoding it. Only items need it, and nearly all Produce
    responses have none.
    """
    cursor.topic = ""
    size = reader.length(view.flexible)
    cursor.topic_size = 0
    if size > 0:
        cursor.topic_size = size
        cursor.topic_at = reader.take(size)
        cursor.topic_in = reader.data


def _id_topic(reader: Reader, cursor: Cursor) -> None:
    """Read the topic's id. Messages with the same topic have one object for it."""
    topic_id = reader.uuid()
    if topic_id != cursor.known_id:
        cursor.known_id = topic_id
    cursor.topic_id = cursor.known_id


def topic_name(cursor: Cursor) -> str:
    """Return the name of the topic that is being read, in a message that names topics; for one that no topic
    can have because it is too long, a short one that no topic has.
    """
    if cursor.topic_size > 0:
        raw = cursor.topic_in[cursor.topic_at : cursor.topic_at + cursor.topic_size]
        if raw != cursor.raw_topic:
            cursor.known_topic = text(raw) if len(raw) <= MAX_TOPIC_NAME else digest(raw)
            cursor.raw_topic = raw
        cursor.topic = cursor.known_topic
        cursor.topic_size = 0
        cursor.topic_in = b""
    return cursor.topic


def _mark(reader: Reader, view: View) -> None:
    cursor = view.cursor
    cursor.mark = reader.mark()
    cursor.marked_edits = len(view.edits)


def _topic(message: Partitioned, reader: Reader, view: View, cursor: Cursor) -> None:
    if cursor.topics_left == 0:
        cursor.phase = TAIL
        return
    protected = view.protected_topics
    if view.api_version >= message.topic_id_from:
        _id_topic(reader, cursor)
        if protected is not None and protected.has_id(cursor.topic_id):
            view.names_protected = True
    elif view.want_items:
        cursor.topic_id = NO_ID
        _name_topic(reader, view, cursor)
        if protected is not None and topic_name(cursor) in protected.names:
            view.names_protected = True
    elif protected is not None:
        size = reader.length(view.flexible)
        if size > 0:
            at = reader.take(size)
            if protected.has_length(size) and protected.has_raw_name(reader.data[at : at + size]):
                view.names_protected = True
    else:
        reader.skip_string(view.flexible)
    cursor.partitions_left = reader.count(view.flexible)
    cursor.room -= cursor.partitions_left
    if cursor.room < 0:
        left = cursor.room + cursor.partitions_left
        raise Malformed(
            f"a topic has {cursor.partitions_left} partitions; the proxy takes {left} more in this message"
        )
    cursor.topics_left -= 1
    cursor.phase = PARTITION
    if cursor.key_hashes is not None:
        _check_hash(cursor, cursor.key_hashes)
    if cursor.topics_left == 0 and protected is not None and not view.want_items:
        # Only names are wanted, and this was the last: most requests have one topic, and nothing behind its
        # name is read.
        cursor.done = True


def _check_hash(cursor: Cursor, hashes: list[int]) -> None:
    """Note the hash code of a topic; after the last one, raise Malformed if they collide."""
    raw = cursor.raw_topic if topic_name(cursor) else b""
    hashes.append(topic_hash(raw, cursor.topic_id))
    if cursor.topics_left == 0:
        check_hashes(hashes, len(hashes), PRODUCE)


def _all_partitions(message: Partitioned, reader: Reader, view: View, cursor: Cursor) -> None:
    """Read the partitions of a topic, and the end of the topic, in a frame that is whole."""
    tags_follow = view.flexible and message.ends_with_records
    message.read_usual(reader, view)
    while cursor.partitions_left > 0:
        _begin_partition(message, reader, view, cursor)
        if view.whole_batches:
            message.read_whole_batches(reader, view)
        else:
            reader.skip(cursor.records_left)
        if not (tags_follow and reader.skip_no_tags()):
            message.read_after_records(reader, view)
        _end_partition(message, view, cursor)
        message.read_usual(reader, view)
    _end_topic(reader, view, cursor)


def _end_topic(reader: Reader, view: View, cursor: Cursor) -> None:
    if view.flexible:
        reader.skip_tags()
    cursor.topic_size = 0
    cursor.topic_in = b""
    cursor.phase = TOPIC


def _partition(message: Partitioned, reader: Reader, view: View, cursor: Cursor) -> None:
    if not view.partial and not view.whole_batches:
        _all_partitions(message, reader, view, cursor)
        return
    if cursor.partitions_left == 0:
        _end_topic(reader, view, cursor)
        return
    _begin_partition(message, reader, view, cursor)
    if _kept_early(message, view, cursor):
        _end_partition(message, view, cursor)
    cursor.phase = RECORDS


def _after_records(message: Partitioned, reader: Reader, view: View, cursor: Cursor) -> None:
    message.read_after_records(reader, view)
    if not _kept_early(message, view, cursor):
        _end_partition(message, view, cursor)
    cursor.phase = PARTITION


def _kept_early(message: Partitioned, view: View, cursor: Cursor) -> bool:
    """Whether the partition that is being read is one of which Partitioned.keeps_last_early tells."""
    return message.keeps_last_early and view.partial and has_all_sizes(cursor)


def has_all_sizes(cursor: Cursor) -> bool:
    """Whether the sizes of all partitions of a message have been read."""
    return cursor.phase != HEAD and cursor.topics_left == 0 and cursor.partitions_left == 0
