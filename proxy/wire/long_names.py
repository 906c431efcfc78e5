"""Long names: a name that is too long to be kept is represented by its beginning and a digest.

A client may name topics that do not exist, or have client ids, of 32 KiB, in compact strings of a megabyte,
and other ones in each request.

    FIRST 200 BYTES~sha256:64 HEXADECIMAL DIGITS

No topic has the characters of the mark in its name.
"""

from hashlib import sha256
from typing import Final

MAX_TOPIC_NAME: Final = 249
"""Kafka's limit for the length of topics' names."""
KEPT_BYTES: Final = 200
"""Enough for people to recognize the name."""
MARK: Final = "~sha256:"
DIGITS: Final = 64


def digest(raw: bytes) -> str:
    """Return the text that represents a long name, in UTF-8."""
    return raw[:KEPT_BYTES].decode(errors="ignore") + MARK + sha256(raw).hexdigest()
