"""The driver's connection: whatever the chunks, the same responses are counted, in order."""

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.client import Client, LoadError
from bench.load.frames import CORRELATION, REQUEST_CORRELATION, RESPONSE_CORRELATION
from bench.load.poller import Poller

REQUEST = bytes(REQUEST_CORRELATION) + bytes(4) + b"body"


class Pair:
    """A client and the other end of its connection."""

    def __init__(self) -> None:
        near, self.far = socket.socketpair()
        near.setblocking(False)
        self.far.settimeout(5)
        self.poller = Poller()
        self.due: list[float] = []
        self.client = Client(near, [REQUEST], self.poller, bytearray(1 << 16), self._on_response)

    def _on_response(self, client: Client, due: float) -> None:
        assert client is self.client
        self.due.append(due)

    def feed(self, data: bytes) -> None:
        """Sends to the client, which reads it in one go."""
        self.far.sendall(data)
        assert self.poller.wait(5) == 1

    def close(self) -> None:
        self.client.close()
        self.far.close()


@pytest.fixture(name="pair")
def made_pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


def response(correlation_id: int, size: int) -> bytes:
    frame = bytearray(size)
    CORRELATION.pack_into(frame, 0, size - 4)
    CORRELATION.pack_into(frame, RESPONSE_CORRELATION, correlation_id)
    return bytes(frame)


@given(
    sizes=st.lists(st.integers(8, 60), min_size=1, max_size=8),
    cuts=st.lists(st.integers(1, 400), max_size=20),
)
def test_any_split_of_the_stream_gives_the_same_responses(sizes: list[int], cuts: list[int]) -> None:
    pair = Pair()
    for number in range(len(sizes)):
        pair.client.offer(float(number))
    stream = b"".join(response(number, size) for number, size in enumerate(sizes))
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    edges = sorted({cut for cut in cuts if cut < len(stream)} | {len(stream)})
    begin = 0
    for edge in edges:
        pair.feed(stream[begin:edge])
        begin = edge
        assert len(pair.due) == sum(end <= edge for end in ends)
    assert pair.due == [float(number) for number in range(len(sizes))]
    assert pair.client.received == len(stream)
    pair.close()


def test_requests_differ_by_their_correlation_id_only(pair: Pair) -> None:
    for _ in range(3):
        pair.client.offer(0.0)
    received = pair.far.recv(3 * len(REQUEST), socket.MSG_WAITALL)
    for number in range(3):
        frame = bytearray(received[number * len(REQUEST) : (number + 1) * len(REQUEST)])
        assert CORRELATION.unpack_from(frame, REQUEST_CORRELATION) == (number,)
        frame[REQUEST_CORRELATION : REQUEST_CORRELATION + 4] = bytes(4)
        assert bytes(frame) == REQUEST
    assert pair.client.sent == 3 * len(REQUEST)


def test_what_the_socket_does_not_take_is_sent_later(pair: Pair) -> None:
    count = 100_000
    for _ in range(count):
        pair.client.offer(0.0)
    assert pair.client.sent < count * len(REQUEST)
    received = 0
    while received < count * len(REQUEST):
        received += len(pair.far.recv(1 << 20))
        pair.poller.wait(0)
    assert pair.client.sent == received == count * len(REQUEST)


def test_a_response_out_of_order_is_an_error(pair: Pair) -> None:
    pair.client.offer(0.0)
    with pytest.raises(LoadError, match=r"correlation id 1\b.*\b0\b"):
        pair.feed(response(1, 20))


def test_an_ended_connection_is_an_error(pair: Pair) -> None:
    pair.client.offer(0.0)
    pair.far.recv(100)
    pair.far.shutdown(socket.SHUT_WR)
    with pytest.raises(LoadError, match=r"\b0 responses"):
        pair.poller.wait(5)
