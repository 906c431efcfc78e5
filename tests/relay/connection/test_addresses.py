"""Wherever a broker's address may stand, the client reads the proxy's."""

from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.relay.settings import RelaySettings
from proxy.wire.addresses import Addresses
from proxy.wire.edit import i32, string
from tests.support.messages.exchanges import milliseconds, opaque, produced, responded
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    PROXY_HOST,
    PROXY_PORT,
    framed,
    read_frame,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.reading import api_of
from tests.support.stories.playbook import Playbook, drive, new_relay

NODES = [(1, BROKER_HOST, 9092), (2, f"{BROKER_HOST}.{'far' * 40}", 9093), (-1, "", -1)]


def element(message: Any, field: str) -> Any:
    return message.__annotations__[field].__args__[0]


def nodes(type_: Any, **more: Any) -> tuple[Any, ...]:
    """The nodes as this type has them."""
    name = "broker_id" if "broker_id" in type_.__annotations__ else "node_id"
    return tuple(type_(**{name: node_id}, host=host, port=port, **more) for node_id, host, port in NODES)


def metadata(version: int) -> Any:
    message = response_type(3, version)
    fields: dict[str, Any] = {"brokers": nodes(element(message, "brokers")), "topics": ()}
    if version >= 3:
        fields["throttle_time"] = milliseconds(0)
    if version >= 13:
        fields["error_code"] = ErrorCode.none
    return message(**fields)


def find_coordinator(version: int) -> Any:
    message = response_type(10, version)
    fields = {"throttle_time": milliseconds(0)} if version >= 1 else {}
    error: dict[str, Any] = {
        "error_code": ErrorCode.none,
        **({"error_message": None} if version >= 1 else {}),
    }
    if version >= 4:
        return message(coordinators=nodes(element(message, "coordinators"), key="g", **error), **fields)
    node_id, host, port = NODES[0]
    return message(node_id=node_id, host=host, port=port, **error, **fields)


def describe_cluster(version: int) -> Any:
    message = response_type(60, version)
    more = {"is_fenced": False} if version >= 2 else {}
    return message(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        cluster_id="c",
        brokers=nodes(element(message, "brokers"), **more),
    )


def with_endpoints(api_key: int, version: int) -> Any:
    message = response_type(api_key, version)
    fields: dict[str, Any] = {"responses": (), "node_endpoints": nodes(element(message, "node_endpoints"))}
    if api_key != 0:
        fields |= {"throttle_time": milliseconds(0), "error_code": ErrorCode.none}
    if "acquisition_lock_timeout" in message.__annotations__:
        fields["acquisition_lock_timeout"] = milliseconds(0)
    return message(**fields)


RESPONSES = [
    *[metadata(version) for version in versions(3)],
    *[find_coordinator(version) for version in versions(10)],
    *[describe_cluster(version) for version in versions(60)],
    *[
        with_endpoints(key, version)
        for key, first in ((0, 10), (1, 16), (78, 1), (79, 1))
        for version in versions(key)
        if version >= first
    ],
]


def passed(response: Any) -> bytes:
    """The response as the client gets it."""
    key, version = response.__api_key__, response.__version__
    request = opaque(1, key, version, body(key, version))
    story = Playbook(new_relay()).client(request).to_broker(request).broker(response_frame(response))
    return b"".join(story.relay.take_to_client())


def body(key: int, version: int) -> bytes:
    """As much of a request as the proxy reads: tags of the header, and the fields of Produce, Fetch and
    FindCoordinator.
    """
    tags = b"\0" if version >= api_of(key).flexible_from else b""
    fields = {0: b"\0" + b"\0\1" + bytes(5), 1: bytes(16), 10: b"\0\1"}
    return tags + fields.get(key, b"")


@pytest.mark.parametrize(
    "response", RESPONSES, ids=lambda response: f"{response.__api_key__}v{response.__version__}"
)
def test_every_address_is_the_proxys(response: Any) -> None:
    frame = passed(response)
    assert BROKER_HOST.encode() not in frame
    assert frame.count(PROXY_HOST.encode()) == (
        1 if 0 <= response.__version__ < 4 and response.__api_key__ == 10 else 2
    )
    assert read_frame(type(response), frame) == through_proxy(response)


def test_a_node_keeps_its_id() -> None:
    brokers = read_frame(response_type(3, 12), passed(metadata(12))).brokers
    assert [(node.node_id, node.host, node.port) for node in brokers] == [
        (1, PROXY_HOST, PROXY_PORT + 1),
        (2, PROXY_HOST, PROXY_PORT + 2),
        (-1, "", -1),
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_controllers_are_left_alone(version: int) -> None:
    response = replace(describe_cluster(version), endpoint_type=2)
    assert passed(response) == response_frame(response)


def test_a_coordinator_that_was_not_found_is_left_alone() -> None:
    response = replace(find_coordinator(3), node_id=-1, host="", port=-1, error_code=ErrorCode(15))
    assert passed(response) == response_frame(response)


def test_a_response_without_addresses_is_not_copied() -> None:
    story = Playbook(new_relay()).client(opaque(1, 0, 7, b"\xff\xff\0\1" + bytes(8)))
    response = produced(1)
    story.broker(response)
    assert story.relay.take_to_client()[0] is response


def unknown_brokers() -> Playbook:
    """A relay whose table of addresses is empty."""
    return Playbook(drive(QuotaEngine([]), Addresses(), Traffic()))


@pytest.mark.parametrize(
    "response", RESPONSES, ids=lambda response: f"{response.__api_key__}v{response.__version__}"
)
def test_a_response_waits_until_its_brokers_have_ports(response: Any) -> None:
    key, version = response.__api_key__, response.__version__
    request = opaque(1, key, version, body(key, version))
    frame = passed(response)
    story = unknown_brokers().client(request + opaque(2)).broker(response_frame(response) + responded(2))
    story.to_broker(request, opaque(2)).to_client(frame, responded(2))
    assert story.relay.asked_for == [1, 2][: frame.count(PROXY_HOST.encode())]
    story.client(request).to_broker(request).broker(response_frame(response)).to_client(frame).idle()
    assert len(story.relay.asked_for) == frame.count(PROXY_HOST.encode()), "known from then on"


def test_nothing_of_a_response_leaves_before_its_brokers_have_ports() -> None:
    relay = Relay(
        QuotaEngine([]),
        Addresses(),
        Traffic(),
        RelaySettings(max_frame_bytes=1 << 20),
        principal="u",
        client_address="a",
    )
    relay.receive_from_client(opaque(1) + opaque(2, 3, 0), 1.0)
    output = relay.receive_from_broker(responded(1) + small_metadata(7) + responded(3), 1.0)
    assert output.to_client == [responded(1)]
    assert [(broker.node_id, broker.host, broker.port) for broker in output.unknown_brokers] == [
        (7, BROKER_HOST, 9092)
    ]
    assert relay.status.response_due


def small_metadata(node_id: int, rest: bytes = bytes(4)) -> bytes:
    """A Metadata response v0 with one broker."""
    return framed(i32(2) + i32(1) + i32(node_id) + string(BROKER_HOST, False) + i32(9092) + rest)


@pytest.mark.parametrize("part_bytes", [5000, 1 << 20, 4 << 20])
def test_a_large_response_waits_as_well(part_bytes: int) -> None:
    rest = bytes(2 << 20)
    response = small_metadata(7, rest)
    story = unknown_brokers().client(opaque(2, 3, 0))
    story.broker(*[response[at : at + part_bytes] for at in range(0, len(response), part_bytes)])
    patched = i32(2) + i32(1) + i32(7) + string(PROXY_HOST, False) + i32(PROXY_PORT + 7)
    story.to_broker(opaque(2, 3, 0)).to_client(framed(patched + rest)).idle()
    assert story.relay.asked_for == [7]


def test_a_broker_that_has_moved_is_told_again() -> None:
    story = unknown_brokers().client(opaque(2, 3, 0)).to_broker(opaque(2, 3, 0)).broker(small_metadata(7))
    moved = small_metadata(7).replace(i32(9092), i32(9093))
    story.client(opaque(2, 3, 0)).broker(moved)
    assert story.relay.asked_for == [7, 7]


def test_a_broker_at_two_addresses_ends_the_connection() -> None:
    """The table has one address for each broker, so the response would wait for ever."""
    first = i32(7) + string(BROKER_HOST, False) + i32(9092)
    response = framed(i32(2) + i32(2) + first + first[:-4] + i32(9093) + i32(0))
    unknown_brokers().client(opaque(2, 3, 0)).broker_fails(
        response, reason=BROKER_PROTOCOL_ERROR, says=r"two addresses.*\b7\b"
    )


def test_what_a_malformed_response_names_is_nobody_elses() -> None:
    addresses = Addresses()
    cut = small_metadata(7)[4:]
    Playbook(drive(QuotaEngine([]), addresses, Traffic())).client(opaque(2, 3, 0)).broker_fails(
        framed(cut[:4] + i32(2) + cut[8:-4]), reason=BROKER_PROTOCOL_ERROR, says="no byte at offset"
    )
    other = Playbook(drive(QuotaEngine([]), addresses, Traffic())).client(opaque(2, 3, 0))
    other.broker(small_metadata(8))
    assert other.relay.asked_for == [8]
