"""Walk: reads a message of topics and partitions step by step, whole or while it arrives.

Produce, Fetch, ShareFetch and ShareAcknowledge share one shape: a head, an array of topics each with an array
of partitions, and a tail. Each partition may carry records, which are skipped. A step is read as a whole or
not at all; in a frame that is cut through, a step that is not there yet raises Short and is read again from
its mark.
"""

from typing import Final

from proxy.wire.errors import Short
from proxy.wire.reader import Reader
from proxy.wire.views import NO_ID, Item, View

HEAD: Final = 0
TOPIC: Final = 1
PARTITION: Final = 2
RECORDS: Final = 3
AFTER_RECORDS: Final = 4
TAIL: Final = 5


class Partitioned:
    """The parts of the shape that differ from one message to the next."""

    topic_id_from: int
    """The first version that names topics by id."""

    def read_head(self, reader: Reader, view: View) -> bool:
        """Read up to the topics and set `topics_left`; return whether the rest has to be read as well."""
        raise NotImplementedError

    def read_partition(self, reader: Reader, view: View) -> int:
        """Read a partition after its number, up to its records, and return how many bytes of them follow."""
        raise NotImplementedError

    def read_whole_batches(self, reader: Reader, view: View) -> None:
        """Read a partition's records, and have what is no whole batch cut off."""
        raise NotImplementedError

    def read_after_records(self, reader: Reader, view: View) -> None:
        """Read what follows a partition's records."""
        if view.flexible:
            reader.skip_tags()

    def read_tail(self, reader: Reader, view: View) -> None:
        """Read what follows the topics."""


def walk(message: Partitioned, reader: Reader, view: View) -> None:
    """Read on from where the last call came to, until the message ends or the bytes do (Short)."""
    while not view.done:
        if view.partial:
            _mark(reader, view)
        phase = view.phase
        if phase == PARTITION:
            _partition(message, reader, view)
        elif phase == RECORDS and view.whole_batches and not view.partial:
            message.read_whole_batches(reader, view)
            view.phase = AFTER_RECORDS
        elif phase == RECORDS:
            view.records_left = reader.skip_available(view.records_left)
            if view.records_left > 0:
                if view.partial:
                    _mark(reader, view)
                raise Short(f"{view.records_left} bytes of records are to come")
            view.phase = AFTER_RECORDS
        elif phase == AFTER_RECORDS:
            message.read_after_records(reader, view)
            if view.want_items:
                view.items.append(_item(view))
            view.phase = PARTITION
        elif phase == TOPIC:
            _topic(message, reader, view)
        elif phase == HEAD:
            view.done = not message.read_head(reader, view)
            view.phase = TOPIC
        else:
            message.read_tail(reader, view)
            view.done = True


def _item(view: View) -> Item:
    size = view.records_size
    return Item(view.topic, view.topic_id, view.partition, size, view.head, view.error_code)


def _mark(reader: Reader, view: View) -> None:
    view.mark = reader.mark()
    view.marked_edits = len(view.edits)


def _topic(message: Partitioned, reader: Reader, view: View) -> None:
    if view.topics_left == 0:
        view.phase = TAIL
        return
    if view.api_version >= message.topic_id_from:
        view.topic_id = reader.uuid()
    elif view.want_items:
        view.topic_id = NO_ID
        view.topic = reader.string(view.flexible)
    else:
        reader.skip_string(view.flexible)
    view.partitions_left = reader.count(view.flexible)
    view.topics_left -= 1
    view.phase = PARTITION


def _partition(message: Partitioned, reader: Reader, view: View) -> None:
    if view.partitions_left == 0:
        if view.flexible:
            reader.skip_tags()
        view.phase = TOPIC
        return
    view.partition = reader.i32()
    view.records_size = view.records_left = message.read_partition(reader, view)
    view.partitions_left -= 1
    view.phase = RECORDS
