"""TlsReader between a client's records and OpenSSL, over memory."""

import asyncio
import contextlib
import random
import ssl
from pathlib import Path
from typing import Any

import pytest

from proxy.relay.budgets.read_turns import FRAMES, FREE_FRAMES
from proxy.security.settings import Tls
from proxy.security.tls import server_tls
from proxy.security.tls_reader import (
    EMPTY_AT_MOST,
    EMPTY_COST,
    HANDSHAKE_RECORDS,
    HEADER_BYTES,
    RECORD_AT_MOST,
    SMALL_BYTES,
    TlsReader,
)
from tests.support.process.certificates import Authority
from tests.support.process.tls_records import HostileClient
from tests.support.waiting import reached

ALL = 256 << 10
"""What the event loop reads at once."""


class Meeting:
    """A server and a client that may be hostile; `send()` gives bytes to the server's event loop."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        signed = authority.sign("proxy")
        tls = server_tls(Tls(certificate=signed.certificate, key=signed.key), ("listeners",))
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.server: Any = tls.context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.client = HostileClient(authority.ca, folder)

    def send(self, data: bytes) -> None:
        self.incoming.write(data)

    def meet(self) -> "Meeting":
        for _ in range(3):
            with contextlib.suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.send(self.client.sent.read())
            with contextlib.suppress(ssl.SSLWantReadError):
                self.server.do_handshake()
            self.client.received.write(self.outgoing.read())
        return self

    def read(self, size: int = ALL) -> bytes:
        """What the event loop reads now, as uvloop does."""
        found = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            while self.incoming.pending or self.server.pending():
                chunk = self.server.read(size)
                if not chunk:
                    return found + b"<end>"
                found += chunk
        return found


class Unencrypted:
    """A reader with, in place of OpenSSL, records whose content is their data; without content they have
    none.
    """

    def __init__(self) -> None:
        self.incoming = ssl.MemoryBIO()
        self._records = ssl.MemoryBIO()
        self.reader = TlsReader(self.incoming, self._records, self._read, int)
        self.sizes: list[int] = []
        """The bytes that each call has written to OpenSSL's buffer."""
        self._left = 0

    def send(self, contents: list[bytes]) -> None:
        for each in contents:
            self.incoming.write(b"\x17\x03\x03" + len(each).to_bytes(2, "big") + each)

    def _read(self, size: int) -> bytes:
        if self._records.pending > self._left:
            self.sizes.append(self._records.pending - self._left)
        content = b""
        while self._records.pending and not content:
            length = int.from_bytes(self._records.read(HEADER_BYTES)[3:], "big")
            content = self._records.read(length) if length > 0 else b""
        self._left = self._records.pending
        if not content:
            raise ssl.SSLWantReadError
        assert len(content) <= size, "a part of a record would wait in OpenSSL"
        return content


@pytest.fixture
def both(tmp_path: Path) -> Meeting:
    return Meeting(tmp_path).meet()


@pytest.mark.parametrize("seed", range(5))
def test_all_data_arrives_in_order_however_it_is_divided(both: Meeting, seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.choice([0, 1, 50, 3000, 16384]) for _ in range(60)]
    pieces = [chance.randbytes(size) for size in sizes]
    sent = b"".join(both.client.record(piece) for piece in pieces)
    got = b""
    while sent:
        part = chance.choice([1, 4, 30, 5000, 100_000])
        both.send(sent[:part])
        sent = sent[part:]
        got += both.read(chance.choice([1, 100, ALL]))
    assert got == b"".join(pieces)


def test_data_is_read_into_a_buffer(both: Meeting) -> None:
    both.send(both.client.record(b"abc") + both.client.record(b"defg"))
    buffer = bytearray(10)
    assert both.server.read(10, buffer) == 7
    assert buffer[:7] == b"abcdefg"


def test_key_updates_are_followed(both: Meeting) -> None:
    for number in range(EMPTY_AT_MOST // EMPTY_COST):
        both.send(both.client.key_update() + both.client.record(b"%d" % number))
        assert both.read() == b"%d" % number


@pytest.mark.parametrize("between", [b"", b"x"])
@pytest.mark.parametrize("padding", [0, 300])
def test_a_flood_of_key_updates_is_not_read_to_its_end(both: Meeting, between: bytes, padding: int) -> None:
    """Even if there is data between them."""
    for _ in range(200):
        both.send(both.client.key_update(padding))
        if between:
            both.send(both.client.record(between))
    with pytest.raises(ssl.SSLError, match="KeyUpdate"):
        both.read()
    both.send(both.client.record(b"more"))
    assert both.read() == b""
    assert both.incoming.pending == 0, "what is not read is dropped"


def test_small_records_of_a_read_are_passed_to_openssl_at_once() -> None:
    records = Unencrypted()
    records.send([b"one", b"two", b"", b"three"])
    assert records.reader.read(ALL) == b"onetwothree"
    assert records.sizes == [11 + 4 * HEADER_BYTES]


@pytest.mark.parametrize("seed", range(5))
def test_openssl_gets_at_most_the_bytes_of_a_record_at_once(seed: int) -> None:
    """Its buffer keeps its size, and there may be many connections."""
    chance = random.Random(seed)
    sizes = [1, SMALL_BYTES, 16384] + [2000] * 30
    contents = [chance.randbytes(chance.choice(sizes)) for _ in range(100)]
    records = Unencrypted()
    records.send(contents)
    assert records.reader.read(1 << 20) == b"".join(contents)
    assert len(records.sizes) < 50, "several small ones at once"
    assert max(records.sizes) <= RECORD_AT_MOST


@pytest.mark.parametrize("before", [0, 40])
def test_openssl_gets_one_record_without_data_too_many(before: int) -> None:
    records = Unencrypted()
    records.send([b"x"] * before + [b""] * 200)
    with pytest.raises(ssl.SSLError, match="without data"):
        records.reader.read(ALL)
    most = EMPTY_AT_MOST // EMPTY_COST + 1
    assert sum(records.sizes) <= before * (HEADER_BYTES + 1) + most * HEADER_BYTES


def test_a_few_in_an_hour_are_nothing(both: Meeting) -> None:
    for number in range(100):
        both.send(both.client.key_update())
        for _ in range(EMPTY_COST):
            both.send(both.client.record(b"x"))
        assert len(both.read()) == EMPTY_COST, number


def test_the_end_comes_after_data_of_the_same_read(both: Meeting) -> None:
    both.send(both.client.record(b"a") + both.client.record(b"b") + both.client.record(b"\x01\0", 21))
    assert both.read() == b"ab<end>"
    assert both.server.read(10) == b""


def test_a_handshake_and_the_data_behind_it(tmp_path: Path) -> None:
    both = Meeting(tmp_path)
    met = False
    while not met:
        with contextlib.suppress(ssl.SSLWantReadError):
            both.client.do_handshake()
            met = True
        sent = both.client.sent.read()
        if met:
            sent += both.client.record(b"first") + both.client.record(b"second")[:20]
        both.send(sent)
        with contextlib.suppress(ssl.SSLWantReadError):
            both.server.do_handshake()
        both.client.received.write(both.outgoing.read())
    assert both.read() == b"first"


def test_a_handshake_in_very_many_records(tmp_path: Path) -> None:
    both = Meeting(tmp_path)
    with contextlib.suppress(ssl.SSLWantReadError):
        both.client.do_handshake()
    hello = both.client.sent.read()[5:]
    assert len(hello) > HANDSHAKE_RECORDS
    both.send(b"".join(b"\x16\x03\x01\0\x01" + hello[at : at + 1] for at in range(len(hello))))
    with pytest.raises(ssl.SSLError, match="handshake"):
        both.server.do_handshake()


def test_a_record_that_is_too_long_is_an_error(both: Meeting) -> None:
    both.send(b"\x17\x03\x03\xff\xff" + bytes(100))
    with pytest.raises(ssl.SSLError):
        both.read()


@pytest.mark.parametrize("seed", range(20))
def test_bytes_that_are_no_records_raise_errors_of_tls_only(both: Meeting, seed: int) -> None:
    chance = random.Random(seed)
    sent = bytearray(b"".join(both.client.record(bytes(chance.choice([1, 300, 5000]))) for _ in range(10)))
    for _ in range(chance.choice([1, 5])):
        sent[chance.randrange(len(sent))] ^= chance.randrange(1, 256)
    got = b""
    with contextlib.suppress(ssl.SSLError):
        for at in range(0, len(sent), 1000):
            both.send(bytes(sent[at : at + 1000]))
            got += both.read()
    assert not any(got), "no data is made up"


async def test_a_flood_of_small_records_leaves_time_to_others(both: Meeting) -> None:
    loop = asyncio.get_running_loop()
    got: list[bytes] = []
    both.server.reader.share_turns(
        loop, resume=lambda: got.append(both.read()), reject=got.clear, closing=bool
    )
    sent = bytes(range(256)) * 4
    both.send(b"".join(both.client.record(sent[at : at + 1]) for at in range(len(sent))))
    got.append(both.read())
    assert len(got[0]) == FREE_FRAMES + FRAMES
    assert both.read() == b"", "not even if more arrives in the same turn"
    await reached(lambda: len(b"".join(got)) == len(sent), "the rest")
    assert b"".join(got) == sent
    assert max(len(each) for each in got) == FREE_FRAMES + FRAMES


async def test_large_records_have_no_turns(both: Meeting) -> None:
    both.server.reader.share_turns(asyncio.get_running_loop(), resume=list, reject=list, closing=bool)
    sent = [bytes([number]) * 4096 for number in range(200)]
    both.send(b"".join(both.client.record(each) for each in sent))
    assert len(both.read(1 << 20)) == 200 * 4096


async def test_small_records_between_large_ones_have_turns(both: Meeting) -> None:
    both.server.reader.share_turns(asyncio.get_running_loop(), resume=list, reject=list, closing=bool)
    both.send(b"".join(both.client.record(bytes(1)) + both.client.record(bytes(4096)) for _ in range(200)))
    assert len(both.read(1 << 20)) == (FREE_FRAMES + FRAMES) * (1 + 4096)


async def test_a_flood_is_reported_outside_of_the_read(both: Meeting) -> None:
    reasons: list[str] = []
    both.server.reader.share_turns(
        asyncio.get_running_loop(), resume=list, reject=reasons.append, closing=bool
    )
    both.send(b"".join(both.client.key_update() for _ in range(50)))
    assert both.read() == b""
    await reached(lambda: len(reasons) > 0, "the reason")
    assert len(reasons) == 1


async def test_a_connection_that_has_ended_waits_for_nothing(both: Meeting) -> None:
    ended: list[bool] = []
    both.server.reader.share_turns(
        asyncio.get_running_loop(), resume=list, reject=list, closing=lambda: len(ended) > 0
    )
    many = [both.client.record(b"x") for _ in range(3 * FRAMES)]
    both.send(b"".join(many[: 2 * FRAMES]))
    assert both.read()
    assert both.incoming.pending > 0
    ended.append(True)
    assert both.read() == b""
    assert both.incoming.pending == 0


async def test_the_end_is_read_apart_from_the_data_before_it(both: Meeting) -> None:
    """The connection may pause because of the data."""
    ends: list[bytes] = []
    both.server.reader.share_turns(
        asyncio.get_running_loop(), resume=lambda: ends.append(both.read()), reject=list, closing=bool
    )
    both.send(both.client.record(b"a") + both.client.record(b"b") + both.client.record(b"\x01\0", 21))
    assert both.read() == b"ab"
    await reached(lambda: ends == [b"<end>"], "the end")


def test_a_byte_keeps_the_end_in_the_socket(both: Meeting) -> None:
    both.send(both.client.record(b"a"))
    assert both.read() == b"a"
    for _ in range(2):
        both.server.reader.keep_end()
        assert both.incoming.pending == 1
    both.send(both.client.record(b"b"))
    both.server.reader.keep_end()
    assert both.read() == b"b"
    assert both.incoming.pending == 0
