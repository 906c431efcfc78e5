"""What a relay outputs reaches the transport in few pieces; over TLS, each becomes a record: small ones are
joined, and a large one is not copied.
"""

import asyncio
from typing import cast

import pytest

from proxy.relay.outgoing import Outgoing
from proxy.server.connection.sending import RECORD_BYTES, joined, send
from proxy.wire.frames import Frame

FULL, LARGE = b"f" * RECORD_BYTES, b"l" * (RECORD_BYTES + 1)


@pytest.mark.parametrize(
    ("pieces", "records"),
    [
        ([b"a"], [b"a"]),
        ([b"a", b"b", b"c"], [b"abc"]),
        ([b"a", FULL[1:], b"b"], [b"a" + FULL[1:], b"b"]),
        ([b"a", FULL, b"b", b"c"], [b"a", FULL, b"bc"]),
        ([LARGE, b"a", b"b", LARGE], [LARGE, b"ab", LARGE]),
        ([b"", b"a"], [b"a"]),
    ],
)
def test_records(pieces: list[bytes], records: list[bytes]) -> None:
    found = joined(list(pieces))
    assert found == records
    assert all(any(record is piece for piece in pieces) for record in found if len(record) > RECORD_BYTES)


class Transport:
    """Keeps what each call writes."""

    def __init__(self) -> None:
        self.writes: list[bytes | list[bytes]] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def writelines(self, pieces: list[bytes]) -> None:
        self.writes.append(list(pieces))


def sent(outgoing: Outgoing, tls: bool) -> list[bytes | list[bytes]]:
    transport = Transport()
    send(cast("asyncio.Transport", transport), outgoing, tls)
    return transport.writes


@pytest.mark.parametrize("tls", [False, True])
def test_frames_that_are_one_piece_are_written_without_a_copy(tls: bool) -> None:
    chunk = b"a chunk"
    frame = Frame([], 0, True)
    frame.lie_in(chunk, 0, len(chunk))
    outgoing = Outgoing()
    outgoing.add_frame(frame)
    [written] = sent(outgoing, tls)
    assert written is chunk


@pytest.mark.parametrize(("tls", "pieces"), [(False, [b"a", b"b"]), (True, [b"ab"])])
def test_other_pieces_are_written_together(tls: bool, pieces: list[bytes]) -> None:
    outgoing = Outgoing()
    outgoing.add([b"a"])
    outgoing.add([b"b"])
    assert sent(outgoing, tls) == [pieces]
