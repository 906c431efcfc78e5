"""What can be wrong with bytes.

ProtocolError
  Malformed       the bytes do not say what the protocol says they must
    Short         they end too early: more may come where the frame is still on its way
  FrameTooLarge   the length in front of a frame is negative or over the limit
  UnsupportedVersion   a version, of an API that the proxy reads, that it cannot read
"""

from typing import Final


class ProtocolError(Exception):
    """A peer broke Kafka's protocol; the connection it did so on has to end."""


class Malformed(ProtocolError):
    """The bytes do not parse."""


class Short(Malformed):
    """The bytes end before the field does."""


class FrameTooLarge(ProtocolError):
    """A frame announces a length that is negative or over the limit."""

    def __init__(self, text: str, head: bytes) -> None:
        super().__init__(text)
        self.head: Final = head
        """The four bytes that stand where a length should: they tell what else the peer may be speaking."""


class UnsupportedVersion(ProtocolError):
    """The proxy reads this API, but not this version; ApiVersions never offered it."""
