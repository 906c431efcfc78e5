"""Errors of connections to brokers."""

import asyncio
import socket

import pytest
from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse

from proxy.errors import BadResponse, UpstreamUnavailable
from proxy.security.access import PLAINTEXT, Access
from proxy.security.broker_hosts import BrokerHosts
from proxy.upstream.broker_connection import BrokerConnection, connect_to_any


async def test_error_has_the_reason_of_every_address() -> None:
    with pytest.raises(UpstreamUnavailable) as caught:
        await connect_to_any([("127.0.0.1", 1), ("::1", 1)], PLAINTEXT, 5.0)
    assert str(caught.value).startswith("127.0.0.1:1: Connection refused; [::1]:1: ")


@pytest.mark.parametrize(
    ("host", "port"), [("kafka..example", 9092), ("k" * 64 + ".example", 9092), ("127.0.0.1", 70_000)]
)
async def test_an_address_that_cannot_be_one(host: str, port: int) -> None:
    with pytest.raises(UpstreamUnavailable, match="is not a valid"):
        await connect_to_any([(host, port)], PLAINTEXT, 5.0)


async def test_an_address_that_upstream_hosts_does_not_allow() -> None:
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.setblocking(False)
        with pytest.raises(UpstreamUnavailable, match=r"upstream\.hosts"):
            await connect_to_any([trap.getsockname()], Access(hosts=BrokerHosts(("kafka-*",))), 5.0)
        with pytest.raises(BlockingIOError):
            trap.accept()


async def test_broker_that_fails_the_check_is_closed_and_the_next_tried() -> None:
    checked = 0

    async def check(broker: object) -> None:
        nonlocal checked
        checked += 1
        if checked == 1:
            raise EOFError

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        broker = await connect_to_any([address, address], PLAINTEXT, 5.0, check)
        with server.accept()[0] as first:
            assert first.recv(1) == b""
        broker.close()
    assert checked == 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"HTTP/1.1 400 Bad Request", "speaks HTTP"),
        (b"\x15\x03\x03\0\2\2\x0a", "speaks TLS"),
        (b"\0\0\0\0", "invalid response size 0"),
    ],
)
async def test_response_in_another_protocol(data: bytes, says: str) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(data)
        writer.close()

    async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
        broker = await BrokerConnection.open(*server.sockets[0].getsockname())
        with pytest.raises(BadResponse, match=says):
            await broker.ask(ApiVersionsRequest(), ApiVersionsResponse)
        broker.close()
