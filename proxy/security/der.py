"""Reading the subject and the expiry of an X.509 certificate (RFC 5280) from its DER encoding."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

SEQUENCE: Final = 0x30
SET: Final = 0x31
OBJECT_IDENTIFIER: Final = 0x06
UTC_TIME: Final = 0x17
"""Universal tags (X.690)."""
VERSION: Final = 0xA0
"""Tag [0] of the version field; version 1 certificates omit it."""


class BadCertificate(ValueError):
    """The bytes are not a certificate."""


@dataclass(frozen=True, slots=True)
class Value:
    """A DER value: its tag, its content, and its complete encoding."""

    tag: int
    content: bytes
    encoded: bytes


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a distinguished name: its type (dotted object identifier) and its value."""

    type: str
    value: Value


Name = list[list[Attribute]]
"""A distinguished name in the order of the certificate: relative distinguished names, each of one or more
attributes."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The fields that the proxy uses. `not_after` is in seconds since the epoch."""

    subject: Name
    not_after: float


def read_certificate(der: bytes) -> Certificate:
    """The certificate with this DER encoding. Raises BadCertificate."""
    try:
        (certificate,) = read_values(der)
        body = read_values(read_values(_content(certificate, SEQUENCE))[0].content)
        if body[0].tag == VERSION:
            body = body[1:]
        # serialNumber, signature, issuer, validity, subject
        not_after = _time(read_values(_content(body[3], SEQUENCE))[1])
        return Certificate(read_name(body[4].content), not_after)
    except (IndexError, ValueError) as error:
        raise BadCertificate(f"not a certificate: {error}") from error


def read_name(content: bytes) -> Name:
    """Parse the content of a Name: relative distinguished names, in the certificate's order."""
    return [[_attribute(value) for value in read_values(_content(rdn, SET))] for rdn in read_values(content)]


def _attribute(pair: Value) -> Attribute:
    kind, value = read_values(_content(pair, SEQUENCE))
    return Attribute(_dotted(_content(kind, OBJECT_IDENTIFIER)), value)


def read_values(data: bytes) -> list[Value]:
    """The sequence of values that `data` encodes. Raises ValueError."""
    values: list[Value] = []
    at = 0
    while at < len(data):
        start, tag, size = at, data[at], data[at + 1]
        at += 2
        if size & 0x80:
            digits = size & 0x7F
            size = int.from_bytes(data[at : at + digits], "big")
            at += digits
        end = at + size
        if end > len(data):
            raise ValueError("a value is longer than its container")
        values.append(Value(tag, data[at:end], data[start:end]))
        at = end
    return values


def _content(value: Value, tag: int) -> bytes:
    if value.tag != tag:
        raise ValueError(f"a value has tag {value.tag}; expected {tag}")
    return value.content


def _dotted(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = (number << 7) | (byte & 0x7F)
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _time(value: Value) -> float:
    """Return seconds since the epoch. UTCTime has two digits, of 1950 to 2049 (RFC 5280, 4.1.2.5)."""
    text = value.content.decode("ascii")
    if value.tag == UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
