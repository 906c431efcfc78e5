"""Writes what a relay outputs to a side of its connection."""

import asyncio
from typing import Final

from proxy.relay.outgoing import Outgoing

RECORD_BYTES: Final = 1 << 14
"""TLS's largest record."""


def send(transport: asyncio.Transport, outgoing: Outgoing, tls: bool) -> None:
    """Write all bytes; `tls`: the transport encrypts them, in few records.

    The event loop encrypts each piece that it gets as a record of its own, which costs as much as relaying a
    small message.
    """
    run = outgoing.run
    if run is not None:
        transport.write(run)
    else:
        transport.writelines(joined(outgoing.pieces) if tls else outgoing.pieces)


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
