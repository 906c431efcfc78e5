"""Asks a broker, over a blocking socket, which brokers are alive, to find out whether a cluster is ready."""

import socket
import struct
from io import BytesIO

from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32


def live_brokers(port: int, timeout: float) -> frozenset[int]:
    """Return the node ids in the Metadata response of the broker at this loopback port; `timeout` is in
    seconds.

    A broker lists the brokers that are not fenced; none if it does not know yet. Every Kafka since 2.8
    supports version 12. Raises OSError if there is no response.
    """
    request = BytesIO()
    header = RequestHeader(
        request_api_key=MetadataRequest.__api_key__,
        request_api_version=MetadataRequest.__version__,
        correlation_id=i32(0),
        client_id=None,
    )
    entity_writer(RequestHeader)(request, header)
    no_topics = MetadataRequest(
        topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    entity_writer(MetadataRequest)(request, no_topics)
    frame = request.getvalue()
    with (
        socket.create_connection(("127.0.0.1", port), timeout) as connection,
        connection.makefile("rb") as stream,
    ):
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        size = stream.read(4)
        if len(size) < 4:
            raise ConnectionResetError("the broker closed the connection")
        response = stream.read(struct.unpack(">i", size)[0])
    _, offset = entity_reader(ResponseHeader)(response, 0)
    metadata, _ = entity_reader(MetadataResponse)(response, offset)
    return frozenset(broker.node_id for broker in metadata.brokers)
