"""The fake broker as a process."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.metadata.v12.response import MetadataResponse

from bench.load.canned import canned_produce
from bench.load.frames import CORRELATION, RESPONSE_CORRELATION, produce_request
from bench.peers.peer import HOST
from bench.rounds import fake_broker
from tests.support.messages.kio_messages import read_frame, request_frame
from tests.support.messages.requests import metadata


@pytest.fixture(params=[False, True], ids=["each", "joined"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[socket.socket]:
    with (
        fake_broker(tmp_path, join=request.param) as port,
        socket.create_connection((HOST, port), timeout=30) as client,
    ):
        yield client


def read(client: socket.socket) -> bytes:
    size = client.recv(4, socket.MSG_WAITALL)
    return size + client.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)


def test_a_produce_request_gets_the_canned_response(client: socket.socket) -> None:
    client.sendall(produce_request("t", 2, 100) * 2)
    expected = bytearray(canned_produce(2))
    CORRELATION.pack_into(expected, RESPONSE_CORRELATION, 0)
    assert [read(client), read(client)] == [bytes(expected)] * 2


def test_it_is_the_only_broker_at_its_own_address(client: socket.socket) -> None:
    client.sendall(request_frame(metadata(), 5))
    response = read_frame(MetadataResponse, read(client))
    (broker,) = response.brokers
    assert (broker.host, broker.port) == client.getpeername()
    assert {partition.leader_id for topic in response.topics for partition in topic.partitions} == {
        broker.node_id
    }


def test_another_request_ends_the_connection_and_is_named(client: socket.socket, tmp_path: Path) -> None:
    client.sendall((12).to_bytes(4, "big") + bytes([0, 77, 0, 0, *bytes(8)]))
    assert client.recv(1) == b""
    (log,) = tmp_path.glob("broker-*.log")
    assert "77" in log.read_text()
