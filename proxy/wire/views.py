"""Views: the few fields that the proxy reads from a message, each with its place in the frame.

An *item* is one partition of a Produce or Fetch message. Offsets count from the first byte of the frame,
which is the first of the four that give its length. A view is filled as the bytes of its frame arrive: see
proxy.wire.walk.
"""

from typing import Final, final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.wire.cursor import NO_ID, Cursor
from proxy.wire.edit import Edit
from proxy.wire.fetch.rewrite import FetchRewrite
from proxy.wire.fetch.session_sizes import NewSession
from proxy.wire.protected_topics import ProtectedTopics

NO_HEAD: Final = b""
UNKNOWN: Final = -1
"""The sum of items' sizes if it is not known."""


UNCHARGED: Final = -1000
"""The error_code of an item of a Produce request that quotas by topic charge when it has been appended."""


class Found:
    """What a quota has looked up for an item's partition, or for all items of a response. The quota
    subclasses it, and checks whether it is its own and still valid.
    """

    __slots__ = ()


@final
@mypyc_attr(free_list_len=1)
class Item:
    """One partition's part of a message. A later message may reuse the object: see SpareItems."""

    __slots__ = ("error_code", "found", "head", "partition", "size", "topic", "topic_id")

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        partition: native,
        size: native,
        head: bytes = b"",
        error_code: native = 0,
    ) -> None:
        self.topic = topic
        """The topic's name; empty where the version names topics by id, until TopicNames knows it."""
        self.topic_id = topic_id
        """The topic's id, 16 bytes; NO_ID where the version names topics by name."""
        self.partition = partition
        self.size = size
        """The bytes of the partition's record batches in the message."""
        self.head = head
        """Produce requests: the head of the record batch, where `View.want_heads`, or where BatchHeads has
        read it.
        """
        self.error_code = error_code
        """In responses, the broker's error. For a rejected partition, an error other than that of the quotas;
        0 for none. In requests, UNCHARGED or 0.
        """
        self.found: Found | None = None
        """What a quota has looked up last for this partition; None for nothing."""

    def become(
        self, topic: str, topic_id: bytes, partition: native, size: native, head: bytes, error_code: native
    ) -> None:
        """Take the values of an item of another message. Most messages have the same partitions as the one
        before, in the same order: then the look-up in `found` stays valid.
        """
        same_topic = topic_id is self.topic_id and (not topic or topic is self.topic)
        if partition != self.partition or not same_topic:
            self.found = None
            self.topic_id = topic_id
            self.partition = partition
        self.topic = topic
        self.size = size
        self.head = head
        self.error_code = error_code


WITHHELD: Final = -1
"""The body_size of a Fetch response that the client does not get."""


def partition_key(item: Item) -> tuple[bytes, str, int]:
    """A key of a partition that is the same in request and response, even if a topic's name was found in
    between.
    """
    return (item.topic_id, item.topic if item.topic_id == NO_ID else "", item.partition)


NO_ITEMS: Final[list[Item]] = []
"""Every view without items shares it; it is never changed."""


class View:
    """The common part of requests and responses: the fields that quotas read, and the edits of the frame.

    The cursor has the position of the reading.
    """

    def __init__(self, api_version: native, flexible: bool, want_items: bool, cursor: Cursor | None) -> None:
        self.cursor: Final[Cursor] = Cursor() if cursor is None else cursor
        self.api_version = api_version
        self.flexible = flexible
        """Whether this version has compact strings and tagged fields."""
        self.want_items = want_items
        self.items: list[Item] = NO_ITEMS
        """Filled only where `want_items`, by keep()."""
        self.items_size: native = UNKNOWN
        """The sum of the sizes of `items`; UNKNOWN if the message has not been read as a whole, or items have
        been removed since.
        """
        self.want_heads = False
        """Produce requests: whether the items have the heads of their record batches."""
        self.rejectable = False
        """Produce requests: whether quotas may reject some of the partitions."""
        self.protected_topics: ProtectedTopics | None = None
        """Produce requests: the topics that set `names_protected`; None for none."""
        self.names_protected = False
        """Whether the message has a protected topic, as far as it has been read."""
        self._edits: list[Edit] | None = None
        self.partial = False
        """Whether the frame is cut through: its end has not arrived."""
        self.whole_batches = False
        """Fetch: whether a partial batch at the end of a partition's records is cut off."""

    def keep(
        self, topic: str, topic_id: bytes, partition: native, size: native, head: bytes, error_code: native
    ) -> None:
        """Add an item. Most responses have none, and need no list of their own."""
        items = self.items
        at = self.cursor.kept
        self.cursor.kept = at + 1
        if at < len(items):
            items[at].become(topic, topic_id, partition, size, head, error_code)
            return
        self.add(Item(topic, topic_id, partition, size, head, error_code))

    def add(self, item: Item) -> None:
        """Add an item that the caller has created."""
        if self.items is NO_ITEMS:
            self.items = [item]
        else:
            self.items.append(item)

    @property
    def edited(self) -> bool:
        """Whether the frame has to be changed before it is forwarded."""
        return self._edits is not None and len(self._edits) > 0

    @property
    def edits(self) -> list[Edit]:
        """The edits of the frame, for adding to. The first access creates the list; most frames have none."""
        edits = self._edits
        if edits is None:
            edits = self._edits = []
        return edits


@final
@mypyc_attr(free_list_len=1)
class RequestView(View):
    """The fields of a request that the proxy reads."""

    def __init__(
        self,
        api_key: native,
        api_version: native,
        correlation_id: native,
        client_id: str,
        size: native,
        *,
        flexible: bool = False,
        want_items: bool = False,
        cursor: Cursor | None = None,
    ) -> None:
        super().__init__(api_version, flexible, want_items, cursor)
        self.api_key = api_key
        self.correlation_id = correlation_id
        self.client_id = client_id
        """Empty for a null client id, as in Kafka's quotas."""
        self.size = size
        """Bytes of header and body: the frame without its four-byte length (what Kafka's produce quota
        counts).
        """
        self.client_software = ""
        """ApiVersions from v3 on: name and version of the client's library, such as
        `apache-kafka-java 4.3.1`; empty if they cannot be read.
        """
        self.acks: native = 1
        """Produce: 0 means that there is no response."""
        self.timeout_ms: native = 0
        """Produce: how long the broker may wait for its replicas. Clients send their request.timeout.ms: for
        so long they await the response.
        """
        self.sent = NO_ITEMS
        """Produce that is cut through: items that have been forwarded, and are not in `items` any more."""
        self.replica_id: native = -1
        """Fetch on a replication listener: 0 and above is a follower. On a client listener always -1."""
        self.max_wait_ms = 0
        """Fetch, ShareFetch: how long the broker may wait for data."""
        self.max_bytes = -1
        """Fetch: the maximum size of the response; -1 if the version has no such field."""
        self.max_bytes_at: native = -1
        self.min_bytes: native = 0
        self.min_bytes_at: native = -1
        self.bounded = False
        """Whether a quota has lowered max_bytes, of the whole fetch or of a partition."""
        self.partitions: native = 0
        """Fetch, if quotas charge time: an upper bound of the partitions for which the broker works, those of
        the session included; or UNCOUNTED or NOT_KNOWN (proxy.wire.fetch.session_sizes).
        """
        self.new_session: NewSession | None = None
        """Fetch, if quotas charge time: whom to tell of the session that the response opens; None for nobody.
        """
        self.topics: native = 0
        """Produce: the number of topics."""
        self.uncharged = False
        """Produce requests: whether any item is UNCHARGED."""
        self.fetch_rewrite: FetchRewrite | None = None
        """Fetch: the changes of the response; None if the request was forwarded unchanged."""


@final
class ErrorCount:
    """An error code, and how often it occurs in a row."""

    __slots__ = ("error_code", "times")

    def __init__(self, error_code: native) -> None:
        self.error_code: Final = error_code
        self.times: native = 1


@final
@mypyc_attr(free_list_len=1)
class ResponseView(View):
    """The fields of a response that the proxy reads."""

    def __init__(
        self,
        api_version: native,
        flexible: bool,
        body_size: native,
        want_items: bool = False,
        cursor: Cursor | None = None,
    ) -> None:
        super().__init__(api_version, flexible, want_items, cursor)
        self.body_size = body_size
        """Bytes after the response header (Kafka's fetch quota counts these and four more)."""
        self.throttle_at: native = -1
        """The offset of the int32 throttle_time_ms; -1 if the version has no such field."""
        self.throttle_time_ms: native = 0
        """The broker's own throttle_time_ms."""
        self.errors: list[ErrorCount] | None = None
        """The error codes other than 0 that have been read, of the response and of its partitions; None for
        none. The partitions of a response may be thousands, and most have the same.
        """
        self.service_seconds = 0.0
        """Seconds from when the broker could begin with the request to this response; 0.0 if that is not
        known.
        """
        self.began = 0.0
        """When the broker could begin with the request; 0.0 if that is not known."""
        self.found: Found | None = None
        """What a quota has looked up for the items, when it was asked whether to withhold them; None for
        nothing.
        """
        self.lock_ms: native = 0
        """ShareFetch: for how long the broker locks the records of the response for the client; 0 if the
        response has no records.
        """

    def note_error(self, error_code: native) -> None:
        """Note an error code; 0 is none."""
        if error_code != 0:
            errors = self.errors
            if errors is None:
                self.errors = [ErrorCount(error_code)]
                return
            last = errors[-1]
            if last.error_code == error_code:
                last.times += 1
            else:
                errors.append(ErrorCount(error_code))
