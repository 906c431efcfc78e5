"""The fake broker's connection."""

import socket
from collections.abc import Iterator

import pytest

from bench.load import frames
from bench.load.canned import canned_fetch, canned_produce
from bench.load.cold import ColdResponses
from bench.load.poller import Poller
from bench.load.session import Session

COLD = ColdResponses("127.0.0.1", 19092, partitions=64)


class Broker:
    """A session, the client's end of its connection, and the loop between."""

    def __init__(self, join: bool) -> None:
        self.client, near = socket.socketpair()
        near.setblocking(False)
        self.client.settimeout(5)
        self.poller = Poller()
        self.poller.add(near, Session(near, self.poller, COLD, bytearray(1 << 16), join).on_events)

    def send(self, data: bytes) -> None:
        self.client.sendall(data)
        assert self.poller.wait(5) == 1


@pytest.fixture(name="broker", params=[False, True], ids=["each", "joined"])
def made_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    broker = Broker(request.param)
    yield broker
    broker.client.close()
    broker.poller.wait(0)


def numbered(frame: bytes | bytearray, offset: int, correlation_id: int) -> bytes:
    copy = bytearray(frame)
    frames.CORRELATION.pack_into(copy, offset, correlation_id)
    return bytes(copy)


def produce(correlation_id: int) -> bytes:
    return numbered(frames.produce_request("t", 2, 100), frames.REQUEST_CORRELATION, correlation_id)


def produced(correlation_id: int) -> bytes:
    return numbered(canned_produce(2), frames.RESPONSE_CORRELATION, correlation_id)


def test_pipelined_requests_get_responses_in_order(broker: Broker) -> None:
    broker.send(b"".join(produce(number) for number in (7, 8, 9)))
    expected = b"".join(produced(number) for number in (7, 8, 9))
    assert broker.client.recv(len(expected), socket.MSG_WAITALL) == expected


def test_a_request_in_pieces_gets_its_response_once_it_is_whole(broker: Broker) -> None:
    request = produce(5)
    for piece in (request[:3], request[3:20], request[20:] + request[:1]):
        broker.send(piece)
    expected = produced(5)
    assert broker.client.recv(1 << 16) == expected


def test_responses_that_the_socket_does_not_take_are_sent_later(broker: Broker) -> None:
    count, size = 20, 200_000
    request = frames.fetch_request("t", 1, size)
    for number in range(count):
        broker.send(numbered(request, frames.REQUEST_CORRELATION, number))
    response = canned_fetch(1, size)
    expected = b"".join(numbered(response, frames.RESPONSE_CORRELATION, number) for number in range(count))
    received = bytearray()
    while len(received) < len(expected):
        broker.poller.wait(0)
        received += broker.client.recv(1 << 20)
    assert received == expected


@pytest.mark.parametrize("size", [3, 1 << 20])
def test_a_frame_of_a_wrong_size_ends_the_connection(
    broker: Broker, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.send(size.to_bytes(4, "big") + bytes(8))
    assert broker.client.recv(10) == b""
    assert f"a frame of {size} bytes" in capsys.readouterr().err
