"""Views: the few fields that the proxy reads from a message, each with its place in the frame.

An *item* is one partition of a Produce or Fetch message. Offsets count from the first byte of the frame,
which is the first of the four that give its length. A view is filled as the bytes of its frame arrive: see
proxy.wire.walk.
"""

from typing import Final, final

from proxy.wire.edit import Edit
from proxy.wire.fetch_answer import FetchAnswer
from proxy.wire.reader import Mark

NO_ID: Final = b"\0" * 16
"""Kafka's null topic id."""


@final
class Item:
    """One partition's part of a message."""

    __slots__ = ("error_code", "head", "partition", "size", "topic", "topic_id")

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        partition: int,
        size: int,
        head: bytes = b"",
        error_code: int = 0,
    ) -> None:
        self.topic = topic
        """The topic's name; empty where the version names topics by id, until TopicNames knows it."""
        self.topic_id: Final = topic_id
        """The topic's id, 16 bytes; NO_ID where the version names topics by name."""
        self.partition: Final = partition
        self.size: Final = size
        """Bytes of record batches that the message carries for this partition."""
        self.head: Final = head
        """Produce requests: the head of the record batch, where `View.want_heads`."""
        self.error_code: Final = error_code
        """Produce responses: what the broker says of this partition."""


NO_ITEMS: Final[list[Item]] = []
"""Shared by every view that wants none; never changed."""


class View:
    """What requests and responses have in common, and how far the reading of one has come."""

    def __init__(self, api_version: int, flexible: bool, want_items: bool) -> None:
        self.api_version = api_version
        self.flexible = flexible
        """Whether this version has compact strings and tagged fields."""
        self.want_items = want_items
        self.items: list[Item] = [] if want_items else NO_ITEMS
        """Filled only where `want_items`."""
        self.want_heads = False
        """Produce requests: whether the items have the heads of their record batches."""
        self.edits: list[Edit] = []
        """What has to change in the frame before it goes on."""
        self.done = False
        """Whether all that the proxy wants to know has been read."""
        self.partial = False
        """Whether the frame is cut through: its end is not there yet."""
        self.length_sent = False
        """Whether the frame's length is already on its way, so that no further edit may change it."""
        self.mark: Mark | None = None
        """In a partial frame: where the next step begins; what stands before may go on."""
        self.marked_edits = 0
        """How many edits lie before the mark; the rest are made anew when the next step is read again."""
        self.phase = 0
        self.topics_left = 0
        self.partitions_left = 0
        self.records_left = 0
        self.topic = ""
        self.topic_id = NO_ID
        self.partition = 0
        self.head = b""
        self.error_code = 0
        self.records_size = 0
        self.records_length_at = 0
        self.whole_batches = False
        """Fetch: whether the part of a batch that a partition's records end with is cut off."""
        self.any_batch = False
        """Whether a whole batch has been read."""


@final
class RequestView(View):
    """What the proxy reads of a request."""

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str,
        size: int,
        flexible: bool = False,
        want_items: bool = False,
    ) -> None:
        super().__init__(api_version, flexible, want_items)
        self.api_key = api_key
        self.correlation_id = correlation_id
        self.client_id = client_id
        """Empty for a null client id, as Kafka's quotas take it."""
        self.size = size
        """Bytes of header and body: the frame without its four-byte length (what Kafka's produce quota
        counts).
        """
        self.client_software = ""
        """ApiVersions from v3 on: name and version of the client's library, as in `apache-kafka-java 4.3.1`;
        empty where they cannot be read.
        """
        self.acks = 1
        """Produce: 0 means that no response comes."""
        self.replica_id = -1
        """Fetch on a replication listener: 0 and above is a follower. On a client listener always -1."""
        self.max_wait_ms = 0
        """Fetch, ShareFetch: how long the broker may wait for data."""
        self.max_bytes = -1
        """Fetch: the most that the response may bring; -1 where the version has no such field."""
        self.max_bytes_at = -1
        self.min_bytes = 0
        self.min_bytes_at = -1
        self.bounded = False
        """Whether a quota has lowered max_bytes, of the whole fetch or of a partition."""
        self.fetch_answer: FetchAnswer | None = None
        """Fetch: what to do with the answer; None where the request has gone on as the client has made it."""


@final
class ResponseView(View):
    """What the proxy reads of a response."""

    def __init__(self, api_version: int, flexible: bool, body_size: int, want_items: bool = False) -> None:
        super().__init__(api_version, flexible, want_items)
        self.body_size = body_size
        """Bytes after the response header (Kafka's fetch quota counts these and four more)."""
        self.throttle_at = -1
        """Where the int32 throttle_time_ms stands; -1 where the version has no such field."""
        self.throttle_time_ms = 0
        """The broker's own throttle_time_ms."""
        self.service_seconds = 0.0
        """From when the broker could begin with the request until this answer came; 0.0 where that is not
        known.
        """
