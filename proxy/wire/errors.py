"""Errors of Kafka's protocol.

ProtocolError
  Malformed            the bytes do not parse
    Short              the bytes end before a field does; of a frame that is still arriving, more may follow
  FrameTooLarge        the length of a frame is negative or over the limit
  UnsupportedVersion   a request has a version that ApiVersions does not offer
"""

from typing import Final


class ProtocolError(Exception):
    """A peer violates Kafka's protocol; its connection is closed."""


class Malformed(ProtocolError):
    """The bytes do not parse."""


class Short(Malformed):
    """The bytes end before a field does."""


class FrameTooLarge(ProtocolError):
    """The length of a frame is negative or over the limit."""

    def __init__(self, text: str, head: bytes) -> None:
        super().__init__(text)
        self.head: Final = head
        """The four bytes in place of the length: they show which other protocol the peer may speak."""


class UnsupportedVersion(ProtocolError):
    """The proxy reads or intercepts the API, but not this version; ApiVersions does not offer it."""
