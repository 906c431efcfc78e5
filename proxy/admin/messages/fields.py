"""Fields that messages of several admin APIs have, and the frame around them."""

from collections.abc import Iterable
from typing import Final

from proxy.wire.apis import read_request_header
from proxy.wire.edit import i16, i32, string, uvarint
from proxy.wire.reader import Reader, text

NO_TAGS: Final = b"\x00"


def open_request(payload: bytes, flexible: bool) -> Reader:
    """A request, of header and body, to be read from its body on. Raises Malformed."""
    reader = Reader([payload])
    read_request_header(reader)
    skip_tags(reader, flexible)
    return reader


def open_response(payload: bytes, flexible: bool) -> Reader:
    """An answer, of header and body, to be read from its body on. Raises Malformed."""
    reader = Reader([payload])
    reader.take(4)  # correlation_id
    skip_tags(reader, flexible)
    return reader


def read_nullable(reader: Reader, flexible: bool) -> str | None:
    """Read a string that may be null."""
    size = reader.length(flexible)
    if size < 0:
        return None
    at = reader.take(size)
    return text(reader.data[at : at + size])


def skip_tags(reader: Reader, flexible: bool) -> None:
    """Step over tagged fields, where the version has some."""
    if flexible:
        reader.skip_tags()


def write_nullable(value: str | None, flexible: bool) -> bytes:
    """A string that may be null."""
    if value is not None:
        return string(value, flexible)
    return uvarint(0) if flexible else i16(-1)


def write_tags(flexible: bool) -> bytes:
    """No tagged fields, where the version has some."""
    return NO_TAGS if flexible else b""


def frame(pieces: Iterable[bytes]) -> bytes:
    """Header and body as a whole frame."""
    body = b"".join(pieces)
    return i32(len(body)) + body
