"""What the proxy wants of an X.509 certificate (RFC 5280), read out of its DER: whose it is, and its end."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

SEQUENCE: Final = 0x30
SET: Final = 0x31
OBJECT_IDENTIFIER: Final = 0x06
UTC_TIME: Final = 0x17
VERSION: Final = 0xA0
"""The certificate's own tag, [0]; it is left out in version 1."""


class BadCertificate(ValueError):
    """These bytes are no certificate."""


@dataclass(frozen=True, slots=True)
class Value:
    """A DER value: its tag, its content, and all its bytes."""

    tag: int
    content: bytes
    encoded: bytes


@dataclass(frozen=True, slots=True)
class Attribute:
    """A part of a distinguished name: a type (dotted object identifier) and its value."""

    type: str
    value: Value


Name = list[list[Attribute]]
"""A distinguished name as the certificate has it: relative distinguished names of one attribute or more."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """`not_after` is seconds since the epoch."""

    subject: Name
    not_after: float


def read_certificate(der: bytes) -> Certificate:
    """Raises BadCertificate."""
    try:
        (certificate,) = read_values(der)
        body = read_values(read_values(_content(certificate, SEQUENCE))[0].content)
        if body[0].tag == VERSION:
            body = body[1:]
        # serialNumber, signature, issuer, validity, subject
        not_after = _time(read_values(_content(body[3], SEQUENCE))[1])
        return Certificate(read_name(body[4].content), not_after)
    except (IndexError, ValueError) as error:
        raise BadCertificate(f"this is no certificate: {error}") from error


def read_name(content: bytes) -> Name:
    """The content of a Name: relative distinguished names, in the certificate's order."""
    return [[_attribute(value) for value in read_values(_content(rdn, SET))] for rdn in read_values(content)]


def _attribute(pair: Value) -> Attribute:
    kind, value = read_values(_content(pair, SEQUENCE))
    return Attribute(_dotted(_content(kind, OBJECT_IDENTIFIER)), value)


def read_values(data: bytes) -> list[Value]:
    """The values that stand one after the other. Raises ValueError."""
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
            raise ValueError("a value is longer than what it stands in")
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
    """UTCTime has two digits of the year, of 1950 to 2049; GeneralizedTime four (RFC 5280, 4.1.2.5)."""
    text = value.content.decode("ascii")
    if value.tag == UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
