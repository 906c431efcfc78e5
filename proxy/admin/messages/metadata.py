"""Metadata requests that may create topics, and the error codes in their responses.

v1 topics may be null, which asks for all of them, as an empty list does in v0; v4 allow_auto_topic_creation;
v9 flexible; v10 topic ids; v12 topics named by their ids, which are never created.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from proxy.admin.messages.fields import frame, open_request, open_response, read_nullable, skip_tags
from proxy.admin.yielder import Yielder
from proxy.wire.apis.api import RequestHeader
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import count, i16, string
from proxy.wire.reader import Reader

FLEXIBLE_FROM: Final = 9
TOPIC_IDS_FROM: Final = 10
ALLOWS_FROM: Final = 4
"""The first version whose requests say whether they may create topics; those of older ones always may."""
_VERSION_AT: Final = 2


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """A Metadata request, split around its topics and its permission to create them."""

    version: int
    """The version of the frames that this class writes: at least ALLOWS_FROM."""
    names: list[str]
    """The topics that it asks for by name, each once; empty if it can create none."""
    head: bytes
    """The bytes before the topics, with the header."""
    topics: bytes
    """The bytes of the array of topics, with its length."""
    tail: bytes
    """The bytes behind allow_auto_topic_creation."""

    def frame(self, *, create: bool) -> bytes:
        """Return the frame of the request; `create`: whether it may create its topics."""
        return frame([self.head, self.topics, bytes([create]), self.tail])

    def creating(self, names: Iterable[str]) -> bytes:
        """Return the frame of a request that asks for these topics alone, and may create them."""
        flexible = self.version >= FLEXIBLE_FROM
        topics = [_topic(name, self.version) for name in names]
        return frame([self.head, count(len(topics), flexible), *topics, b"\x01", self.tail])


def _topic(name: str, version: int) -> bytes:
    flexible = version >= FLEXIBLE_FROM
    topic_id = NO_ID if version >= TOPIC_IDS_FROM else b""
    return topic_id + string(name, flexible) + (b"\x00" if flexible else b"")


async def read_metadata_request(header: RequestHeader, payload: bytes, yielder: Yielder) -> MetadataRequest:
    """Read a request from its header and body. Raises Malformed."""
    version = header.api_version
    flexible = version >= FLEXIBLE_FROM
    reader = open_request(header, payload, flexible)
    start = reader.offset
    names: dict[str, None] = {}
    by_id = False
    for _ in range(reader.count(flexible)):
        by_id = (version >= TOPIC_IDS_FROM and reader.uuid() != NO_ID) or by_id
        name = read_nullable(reader, flexible)
        if name is not None:
            names[name] = None
        skip_tags(reader, flexible)
        await yielder.step()
    end = reader.offset
    allowed = version < ALLOWS_FROM or reader.u8() != 0
    tail = payload[reader.offset :]
    head = payload[:start]
    if version < ALLOWS_FROM:
        head = head[:_VERSION_AT] + i16(ALLOWS_FROM) + head[_VERSION_AT + 2 :]
        tail = b""
    wanted = list(names) if allowed and not by_id else []
    return MetadataRequest(max(version, ALLOWS_FROM), wanted, head, payload[start:end], tail)


async def read_topic_errors(payload: bytes, version: int, yielder: Yielder) -> dict[str, int]:
    """Return the error code of each topic in a response, which has header and body. Raises Malformed."""
    flexible = version >= FLEXIBLE_FROM
    reader = open_response(payload, flexible)
    reader.take(4)  # throttle_time_ms
    for _ in range(reader.count(flexible)):
        reader.take(4)  # node_id
        reader.skip_string(flexible)  # host
        reader.take(4)  # port
        reader.skip_string(flexible)  # rack
        skip_tags(reader, flexible)
    reader.skip_string(flexible)  # cluster_id
    reader.take(4)  # controller_id
    errors: dict[str, int] = {}
    for _ in range(reader.count(flexible)):
        error_code = reader.i16()
        name = read_nullable(reader, flexible)
        if version >= TOPIC_IDS_FROM:
            reader.uuid()
        reader.take(1)  # is_internal
        for _ in range(reader.count(flexible)):
            _skip_partition(reader, version, flexible)
            await yielder.step()
        if version >= 8:
            reader.take(4)  # topic_authorized_operations
        skip_tags(reader, flexible)
        if name is not None:
            errors[name] = error_code
        await yielder.step()
    return errors


def _skip_partition(reader: Reader, version: int, flexible: bool) -> None:
    reader.take(14 if version >= 7 else 10)  # error_code, partition_index, leader_id; v7 leader_epoch
    for _ in range(3 if version >= 5 else 2):
        reader.skip(4 * reader.count(flexible))  # replica_nodes, isr_nodes; v5 offline_replicas
    skip_tags(reader, flexible)
