import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BytesIO
from threading import Thread

import pytest
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseBroker
from kio.schema.response_header.v1.header import ResponseHeader
from kio.serial import entity_writer

from proxy.demo.kafka.broker_probe import live_brokers
from tests.support.messages.requests import build


def metadata(*node_ids: int) -> bytes:
    response = BytesIO()
    entity_writer(ResponseHeader)(response, build(ResponseHeader, correlation_id=0))
    brokers = tuple(
        build(MetadataResponseBroker, node_id=node_id, host="127.0.0.1", port=9000 + node_id, rack=None)
        for node_id in node_ids
    )
    entity_writer(MetadataResponse)(
        response,
        build(
            MetadataResponse,
            throttle_time=timedelta(),
            brokers=brokers,
            cluster_id=None,
            controller_id=1,
            topics=(),
        ),
    )
    return struct.pack(">i", len(response.getvalue())) + response.getvalue()


@contextmanager
def broker(response: bytes) -> Iterator[int]:
    """The port of a socket that sends `response` to its first client's request, and then closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as request:
                size = struct.unpack(">i", request.read(4))[0]
                assert request.read(size)[:4] == struct.pack(">hh", 3, 12)
                connection.sendall(response)

        thread = Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_the_brokers_of_the_response() -> None:
    with broker(metadata(1, 3)) as port:
        assert live_brokers(port, 10.0) == {1, 3}


def test_a_broker_that_does_not_know_yet() -> None:
    with broker(metadata()) as port:
        assert live_brokers(port, 10.0) == frozenset()


def test_a_broker_that_closes_the_connection() -> None:
    with broker(b"") as port, pytest.raises(ConnectionResetError):
        live_brokers(port, 10.0)


def test_no_broker_at_the_port() -> None:
    """The port stays taken, so that no other process listens at it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            live_brokers(taken.getsockname()[1], 10.0)
