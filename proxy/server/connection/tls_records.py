"""Writes to a TLS connection in few records.

The event loop encrypts each piece that it gets as a record of its own, which costs as much as relaying a
small message.
"""

from typing import Final

RECORD_BYTES: Final = 1 << 14
"""TLS's largest record."""


def joined(pieces: list[bytes]) -> list[bytes]:
    """Return the same bytes in pieces of up to RECORD_BYTES; a piece that is longer is not copied."""
    if len(pieces) == 1:
        return pieces
    records: list[bytes] = []
    record: list[bytes] = []
    size = 0
    for piece in pieces:
        if size + len(piece) > RECORD_BYTES and record:
            records.append(b"".join(record))
            record = []
            size = 0
        record.append(piece)
        size += len(piece)
    records.append(b"".join(record))
    return records
