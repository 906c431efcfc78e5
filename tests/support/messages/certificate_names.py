"""Generated names of certificates in DER: ordinary ones, and ones with which a client might impersonate
another.
"""

from random import Random
from typing import Final

SEQUENCE: Final = 0x30
SET: Final = 0x31
OBJECT_IDENTIFIER: Final = 0x06
TYPES: Final = {
    "CN": "550403",
    "C": "550406",
    "L": "550407",
    "ST": "550408",
    "STREET": "550409",
    "O": "55040a",
    "OU": "55040b",
    "SERIAL": "550405",
    "TITLE": "55040c",
    "EMAIL": "2a864886f70d010901",
    "DC": "0992268993f22c640119",
    "UID": "0992268993f22c640101",
}
UTF8, PRINTABLE, T61, IA5, GENERAL, UNIVERSAL, BMP, NUMERIC, VISIBLE, OCTETS = (
    0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E, 0x12, 0x1A, 0x04,
)  # fmt: skip
TAGS: Final = (
    UTF8,
    UTF8,
    UTF8,
    PRINTABLE,
    PRINTABLE,
    T61,
    IA5,
    GENERAL,
    UNIVERSAL,
    BMP,
    NUMERIC,
    VISIBLE,
    OCTETS,
)
PIECES: Final = (
    "alice", "bob", "CN=alice", ",", ",CN=alice", "+", "=", "\\", '"', "<", ">", ";", "#", "#0c01", " ", "  ",
    "\0", "\r", "\n", "\t", "/", "$1", "\x7f", "\u00e4", "\u674e", "\U0001f600", "\u202e", "\ufeff", "\u0085",
    "\u00a0", "a\u0308", "\\,", "\\00",
)  # fmt: skip
WRONG: Final = (b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xc3\xbc")


def der(tag: int, content: bytes) -> bytes:
    """A DER value."""
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    size = len(content).to_bytes(2, "big")
    return bytes([tag, 0x80 | len(size)]) + size + content


def attribute(kind: str, tag: int, value: bytes) -> bytes:
    """An attribute of a name."""
    return der(SEQUENCE, der(OBJECT_IDENTIFIER, bytes.fromhex(TYPES[kind])) + der(tag, value))


def name(random: Random) -> bytes:
    """A name of up to five parts, some of which have several attributes."""
    parts = []
    for _ in range(random.choice([0, 1, 1, 2, 3, 5])):
        attributes = [_attribute(random) for _ in range(random.choice([1, 1, 1, 2, 3]))]
        parts.append(der(SET, b"".join(attributes)))
    return der(SEQUENCE, b"".join(parts))


def _attribute(random: Random) -> bytes:
    kind = random.choice(["CN", "CN", "CN", *TYPES])
    tag = random.choice(TAGS)
    text = "".join(random.choices(PIECES, k=random.choice([0, 1, 1, 2, 4])))
    value = text.encode({BMP: "utf-16-be", UNIVERSAL: "utf-32-be"}.get(tag, "utf-8"))
    if random.random() < 0.1:
        at = random.randrange(len(value) + 1)
        value = value[:at] + random.choice(WRONG) + value[at:]
    return attribute(kind, tag, value)
