"""Cursor: how far the reading of a message has come."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.reader import Mark

NO_ID: Final = b"\0" * 16
"""Kafka's null topic id."""
NO_PARTITION: Final = -1
"""The partition number of bytes that belong to no single partition."""
AMPLE_ROOM: Final = 1 << 40
"""More partitions than a message can have."""
HEAD: Final = 0
"""The first phase of a walk: see proxy.wire.walk, which has the others."""


@final
class Cursor:
    """The position of the reading.

    A whole frame is read in one call, so all whole frames of a listener's connections share a cursor. A frame
    that is cut through has its own.
    """

    def __init__(self) -> None:
        self.topics_left: native = 0
        """The topics of the message that have not been read."""
        self.partitions_left: native = 0
        """The partitions of the current topic that have not been read."""
        self.records_left: native = 0
        """The bytes of records of the current partition that have not been read."""
        self.room: native = AMPLE_ROOM
        """How many partitions more the message may have."""
        self.partition: native = 0
        """The number of the current partition."""
        self.kept: native = 0
        """How many items have been made of the message."""
        self.known_id = NO_ID
        """The id of the last topic that had one."""
        self.raw_topic = b""
        """The name of the last topic of which an item was made, in this message or an earlier one, and the
        same as text: many messages have the same topics.
        """
        self.known_topic = ""
        self.records_size: native = 0
        """The bytes of records of the current partition."""
        self.key_hashes: list[int] | None = None
        """In a Produce request with many topics that is cut through, their hash codes: see
        proxy.wire.keyed.keyed_arrays.
        """
        self.records_length_at: native = 0
        """In Fetch responses, the offset of their length field."""
        self.start()

    def start(self) -> None:
        """Begin with another message. Numbers that are always set before they are read keep their values."""
        self.done = False
        """Whether all fields that the proxy needs have been read."""
        self.length_sent = False
        """Whether the frame's length has been forwarded, so that no further edit may change it."""
        self.mark: Mark | None = None
        """In a frame that is cut through: where the next step begins; the bytes before may be forwarded."""
        self.marked_edits: native = 0
        """The number of edits before the mark; the others are made again when the next step is read again."""
        self.phase: native = HEAD
        self.room = AMPLE_ROOM
        self.kept = 0
        self.topic = ""
        self.topic_id = NO_ID
        self.topic_in = b""
        """Where the topic's name is, if `topic` is not set yet: in these bytes, from an offset on."""
        self.topic_at: native = 0
        self.topic_size: native = 0
        self.head = b""
        """In Produce requests, the head of the current partition's record batch, if View.want_heads."""
        self.error_code: native = 0
        """In responses, the error of the current partition."""
        self.any_batch = False
        """Whether a whole batch has been read."""
