"""Fields that the messages of several admin APIs have, and the frame around them."""

from collections.abc import Iterable
from typing import Final

from proxy.wire.apis.api import RequestHeader
from proxy.wire.edit import NO_TAGS, i16, i32, string, uvarint
from proxy.wire.reader import Reader, text

MAX_CHANGES: Final = 10_000
"""Quotas or configs, and the entities or resources that have them, that one request may change: KRaft writes
no more records for one request (MAX_RECORDS_PER_USER_OP).
"""
MAX_REQUEST_BYTES: Final = 2 << 20
"""The largest request that is read topic by topic, because that takes many times its bytes of memory. The
topics that a controller creates at once fit (10,000 partitions, KRaft); tools that name a protected topic
send far smaller requests.
"""
MAX_MESSAGE_CHARACTERS: Final = 1000
"""The maximum of an error message: it may quote the request, and a string of a version that is not flexible
has 32,767 bytes at most.
"""


def open_request(header: RequestHeader, payload: bytes, flexible: bool) -> Reader:
    """Return a reader of a request, given with its header, that stands at the body. Raises Malformed."""
    reader = Reader([payload])
    reader.take(header.size)
    skip_tags(reader, flexible)
    return reader


def open_response(payload: bytes, flexible: bool) -> Reader:
    """Return a reader of a response, given with its header, that stands at the body. Raises Malformed."""
    reader = Reader([payload])
    reader.take(4)  # correlation_id
    skip_tags(reader, flexible)
    return reader


def read_nullable(reader: Reader, flexible: bool) -> str | None:
    """Read a nullable string."""
    size = reader.length(flexible)
    if size < 0:
        return None
    at = reader.take(size)
    return text(reader.data[at : at + size])


def skip_tags(reader: Reader, flexible: bool) -> None:
    """Skip the tagged fields, if the version has them."""
    if flexible:
        reader.skip_tags()


def write_nullable(value: str | None, flexible: bool) -> bytes:
    """Encode a nullable string."""
    if value is not None:
        return string(value, flexible)
    return uvarint(0) if flexible else i16(-1)


def write_message(message: str | None, flexible: bool) -> bytes:
    """Encode an error message, or its beginning if it is long."""
    return write_nullable(None if message is None else message[:MAX_MESSAGE_CHARACTERS], flexible)


def write_tags(flexible: bool) -> bytes:
    """Encode an empty set of tagged fields, if the version has them."""
    return NO_TAGS if flexible else b""


def frame(pieces: Iterable[bytes]) -> bytes:
    """Join header and body, and put the frame's length in front."""
    body = b"".join(pieces)
    return i32(len(body)) + body
