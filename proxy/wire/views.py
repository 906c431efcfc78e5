"""Views: the few fields that the proxy reads from a message, each with its place in the frame.

An *item* is one partition of a Produce or Fetch message (or one topic of an admin request). Offsets count from the
frame's first byte after its four-byte length, where the header begins.
"""

from typing import Final, final

NO_ID: Final = b"\0" * 16
"""Kafka's null topic id."""


@final
class Item:
    """One partition's part of a message."""

    __slots__ = ("end", "partition", "size", "start", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, partition: int, size: int, start: int, end: int) -> None:
        self.topic: Final = topic
        """The topic's name; empty where the version names topics by id."""
        self.topic_id: Final = topic_id
        """The topic's id, 16 bytes; NO_ID where the version names topics by name."""
        self.partition: Final = partition
        self.size: Final = size
        """Bytes of record batches that the message carries for this partition."""
        self.start: Final = start
        self.end: Final = end


@final
class RequestView:
    """What the proxy reads of a request."""

    __slots__ = (
        "acks", "api_key", "api_version", "client_id", "correlation_id", "items", "max_bytes", "max_bytes_at",
        "min_bytes_at", "replica_id", "size",
    )  # fmt: skip

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str, size: int) -> None:
        self.api_key: Final = api_key
        self.api_version: Final = api_version
        self.correlation_id: Final = correlation_id
        self.client_id: Final = client_id
        """Empty for a null client id, as Kafka's quotas take it."""
        self.size: Final = size
        """Bytes of header and body: the frame without its four-byte length (what Kafka's produce quota counts)."""
        self.items: list[Item] = []
        """Filled only where the caller asked for items."""
        self.acks = 1
        """Produce: 0 means that no response comes."""
        self.replica_id = -1
        """Fetch: 0 and above where the request says that it comes from a follower."""
        self.max_bytes = -1
        """Fetch: the most that the response may bring; -1 where the version has no such field."""
        self.max_bytes_at = -1
        self.min_bytes_at = -1


@final
class ResponseView:
    """What the proxy reads of a response."""

    __slots__ = ("body_size", "items", "throttle_at", "throttle_time_ms")

    def __init__(self, body_size: int) -> None:
        self.body_size: Final = body_size
        """Bytes after the response header (Kafka's fetch quota counts these and four more)."""
        self.throttle_at = -1
        """Where the int32 throttle_time_ms stands; -1 where the version has no such field."""
        self.throttle_time_ms = 0
        """The broker's own throttle_time_ms."""
        self.items: list[Item] = []
