"""Whole Kafka messages as frames, encoded and decoded by kio, which shares no code with the proxy."""

import io
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from proxy.wire.addresses import UNKNOWN_TAG, Address, Addresses
from proxy.wire.api_keys import DESCRIBE_QUORUM

LENGTH: Final = 4
PROXY_HOST: Final = "proxy.example"
PROXY_PORT: Final = 19000
BROKER_HOST: Final = "broker.internal"
"""No frame that is sent to a client may have this host."""


class Ports(Addresses):
    """The proxy's address of node N is PROXY_HOST, port PROXY_PORT + N."""

    def find(self, node_id: int, host: str, port: int) -> Address:
        return Address(PROXY_HOST, _port(node_id))


def _port(node_id: int) -> int:
    """A port for every node id, as an int32."""
    return (PROXY_PORT + node_id) % 2**31


def versions(api_key: int) -> list[int]:
    """The versions that kio has of an API."""
    return sorted(schema_name_map[api_key_map[api_key]])


def request_type(api_key: int, version: int) -> Any:
    return load_request_schema(api_key, version)


def response_type(api_key: int, version: int) -> Any:
    return load_response_schema(api_key, version)


def framed(body: bytes) -> bytes:
    """A body with its length in front."""
    return len(body).to_bytes(LENGTH, "big") + body


def parts_of(frame: bytes, cuts: list[int]) -> list[bytes]:
    """A frame cut at these offsets."""
    edges = [0, *sorted(cuts), len(frame)]
    return [frame[start:end] for start, end in pairwise(edges)]


def encode(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def decode(entity_type: Any, data: bytes) -> tuple[Any, int]:
    """Decode an entity at the start of `data`; return it and its number of bytes."""
    return entity_reader(entity_type)(data, 0)


def request_frame(request: Any, correlation_id: int = 1, client_id: str | None = "client") -> bytes:
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return framed(encode(header) + encode(request))


def response_frame(response: Any, correlation_id: int = 1) -> bytes:
    return framed(encode(response.__header_schema__(correlation_id=correlation_id)) + encode(response))


def read_frame(entity_type: Any, frame: bytes) -> Any:
    """Decode the message of a frame. Its length must be right, and nothing may follow the message."""
    assert int.from_bytes(frame[:LENGTH], "big") == len(frame) - LENGTH
    header_size = decode(entity_type.__header_schema__, frame[LENGTH:])[1]
    message, size = decode(entity_type, frame[LENGTH + header_size :])
    assert LENGTH + header_size + size == len(frame), "the frame holds more than the message"
    return message


def is_without_endpoints(frame: bytes, response: Any, correlation_id: int = 1) -> bool:
    """Whether a frame is this response with an unknown tag in place of its NodeEndpoints.

    kio rejects unknown tags, so the end of the frame is read here.
    """
    empty = response_frame(without_endpoints(response), correlation_id)
    # The last byte is the number of tags, here none.
    start = len(empty) - 1
    tags, tag = frame[start : start + 2]
    size = shift = 0
    at = start + 2
    while True:
        size |= (frame[at] & 0x7F) << shift
        shift += 7
        at += 1
        if frame[at - 1] < 0x80:
            break
    length = int.from_bytes(frame[:LENGTH], "big")
    return (
        length == len(frame) - LENGTH
        and frame[LENGTH:start] == empty[LENGTH:start]
        and (tags, tag) == (1, UNKNOWN_TAG)
        and frame[at:] == bytes(size)
    )


def through_proxy(value: Any) -> Any:
    """Return a message with every broker's address replaced by that of Ports, and without controllers'."""
    if isinstance(value, tuple):
        return tuple(through_proxy(element) for element in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if getattr(value, "endpoint_type", 1) != 1:
        return value  # Clients do not reach controllers through the proxy.
    if getattr(value, "__api_key__", None) == DESCRIBE_QUORUM and hasattr(value, "nodes"):
        return replace(value, nodes=())
    changes = {field.name: through_proxy(getattr(value, field.name)) for field in fields(value)}
    node_id = changes.get("node_id", changes.get("broker_id", -1))
    if "host" in changes and node_id >= 0 and changes["host"]:
        changes["host"] = PROXY_HOST
        changes["port"] = _port(node_id)
    return replace(value, **changes)


def without_endpoints(response: Any) -> Any:
    """A response without its NodeEndpoints, if it has the field."""
    if not hasattr(response, "node_endpoints"):
        return response
    return replace(response, node_endpoints=())


def has_address(response: Any) -> bool:
    """Whether one of the NodeEndpoints is a broker's address."""
    return any(node.node_id >= 0 and node.host for node in getattr(response, "node_endpoints", ()))
