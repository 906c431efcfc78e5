"""How a connection ends that cannot go on: a reason that names the guilty side, and a text that says why."""

import pytest

from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.parser import LARGE
from proxy.wire.api_keys import (
    API_VERSIONS,
    BOUNDED_OTHERWISE,
    END,
    FETCH,
    MAY_BE_LARGE,
    NAMES,
    OFFSET_FETCH,
    SYNC_GROUP,
    api_name,
)
from proxy.wire.apis.api import Api
from proxy.wire.apis.registry import WITHOUT_INTERCEPTED
from tests.support.messages.exchanges import chunks, fetch, opaque, produce, produced, responded
from tests.support.messages.kio_messages import Ports, framed
from tests.support.stories.playbook import EVERYONE, Playbook, drive, engine, new_relay

TLS_HELLO = bytes.fromhex("160301020001000001fc0303") + bytes(32)
HTTP = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIMIT = 100 << 20
BOUNDED = [key for key in (*range(len(NAMES)), END) if key not in MAY_BE_LARGE | BOUNDED_OTHERWISE]


def client_fails(*chunks: bytes, says: str) -> None:
    Playbook(new_relay()).client_fails(*chunks, reason=CLIENT_PROTOCOL_ERROR, says=says)


def test_a_tls_hello_is_named() -> None:
    client_fails(TLS_HELLO, says="announces 369295618 bytes.*TLS hello.*security.protocol")


def test_http_is_named() -> None:
    client_fails(HTTP, says="HTTP on a Kafka port")


@pytest.mark.parametrize(("hello", "name"), [(TLS_HELLO, "TLS"), (HTTP, "HTTP")], ids=["TLS", "HTTP"])
@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
def test_it_is_named_however_it_is_cut(hello: bytes, name: str, cut: int) -> None:
    client_fails(hello[:cut], hello[cut:], says=name)


def test_what_is_merely_too_long_is_not_called_anything_else() -> None:
    with pytest.raises(Exception, match=r"\b104857601\b.*\b104857600\b") as caught:
        Playbook(new_relay()).client((LIMIT + 1).to_bytes(4, "big"))
    assert "looks like" not in str(caught.value)


def test_a_negative_length() -> None:
    client_fails(b"\xff\xff\xff\xff", says="announces -1 bytes")


def test_the_limit_is_the_listeners_own() -> None:
    story = Playbook(new_relay(max_frame_bytes=1000)).client(opaque(1)).to_broker(opaque(1))
    request = produce(2, size=1001)
    story.client_fails(request[:4], reason=CLIENT_PROTOCOL_ERROR, says=r"\b1001\b.*\b1000\b")


def bounded(bound: int = 100_000) -> Playbook:
    return Playbook(drive(engine({}), Ports(), Traffic(), max_list_bytes=bound))


@pytest.mark.parametrize("api_key", BOUNDED)
def test_a_list_that_would_occupy_a_broker_does_not_reach_it(api_key: int) -> None:
    large = opaque(2, api_key, 1, bytes(100_000))
    story = bounded().client(opaque(1)).to_broker(opaque(1))
    says = rf"^{api_name(api_key)} .*\b{len(large)}\b.* limits\.max_list_request_bytes .*\b100000\b"
    story.client_fails(large, reason=CLIENT_PROTOCOL_ERROR, says=says)
    story.to_broker()


@pytest.mark.parametrize("fetch_quota", [False, True])
def test_nor_does_its_first_part(fetch_quota: bool) -> None:
    """A larger one is not buffered either, as a fetch is that quotas limit."""
    quotas = engine({EVERYONE: {"consumer_byte_rate": 1000.0}} if fetch_quota else {})
    story = Playbook(drive(quotas, Ports(), Traffic(), max_list_bytes=100_000))
    large = opaque(1, FETCH, 11, bytes(8 << 20))
    parts = chunks(large)
    story.client_fails(*parts[: len(parts) // 4], reason=CLIENT_PROTOCOL_ERROR, says="^Fetch has 83886")
    story.to_broker()


def test_a_list_of_the_largest_size_is_forwarded() -> None:
    largest = opaque(1, OFFSET_FETCH, 1, bytes(50_000))
    bounded(len(largest)).client(largest).to_broker(largest)
    bounded(len(largest) - 1).client_fails(largest, reason=CLIENT_PROTOCOL_ERROR, says="^OffsetFetch has")


def test_records_and_the_metadata_of_groups_may_be_larger() -> None:
    large = produce(1, size=200_000) + opaque(2, SYNC_GROUP, 1, bytes(200_000))
    bounded().client(large).to_broker(produce(1, size=200_000), opaque(2, SYNC_GROUP, 1, bytes(200_000)))


@pytest.mark.parametrize("api_key", sorted(MAY_BE_LARGE))
def test_what_may_be_large_is_bounded_too(api_key: int) -> None:
    largest = opaque(1, api_key, 1, bytes(50_000))
    bound = -(-len(largest) // LARGE)
    bounded(bound).client(largest).to_broker(largest)
    says = f"^{api_name(api_key)} has"
    bounded(bound - 1).client_fails(largest, reason=CLIENT_PROTOCOL_ERROR, says=says)


@pytest.mark.parametrize("size", [100_000, 3 << 20])
@pytest.mark.parametrize("behind", [3, 2, 1])
def test_a_large_produce_request_with_very_many_tagged_fields_is_not_forwarded_whole(
    size: int, behind: int
) -> None:
    """In its partition, in its topic, or at its end. A broker makes an object of each."""
    whole = produce(1, version=9, size=size)
    fields = size // 4
    bomb = bytes([fields & 0x7F | 0x80, fields >> 7 & 0x7F | 0x80, fields >> 14]) + b"\x50\0" * fields
    asked = framed(whole[4:-behind] + bomb + bytes(behind - 1))
    story = Playbook(new_relay())
    story.client_fails(*chunks(asked), reason=CLIENT_PROTOCOL_ERROR, says="tagged fields")
    assert len(b"".join(story.relay.take_to_broker())) < len(asked)
    Playbook(new_relay()).client(*chunks(whole)).to_broker(whole)


def test_a_producer_is_muted_before_a_list_that_is_too_large_is_read() -> None:
    quotas = engine({EVERYONE: {"producer_byte_rate": 1000.0}})
    story = Playbook(drive(quotas, Ports(), Traffic(), max_list_bytes=1000))
    story.client(produce(1, size=3000) + opaque(2, OFFSET_FETCH, 1, bytes(2000))).to_broker(
        produce(1, size=3000)
    )
    story.muted(2.0).fails_at(2.0, CLIENT_PROTOCOL_ERROR, "^OffsetFetch has")


def test_malformed_bytes_behind_a_good_request() -> None:
    story = Playbook(new_relay()).client(opaque(1)).to_broker(opaque(1))
    story.client_fails(TLS_HELLO, reason=CLIENT_PROTOCOL_ERROR, says="TLS")


def test_malformed_bytes_behind_a_muted_request_are_found_when_the_mute_ends() -> None:
    slow = new_relay({EVERYONE: {"producer_byte_rate": 1000.0}})
    story = Playbook(slow).client(produce(1, size=3000) + HTTP).to_broker(produce(1, size=3000)).muted(2.0)
    story.fails_at(2.0, CLIENT_PROTOCOL_ERROR, "HTTP on a Kafka port")


def test_a_malformed_request_behind_a_muted_one_is_found_when_the_wait_is_over() -> None:
    slow = new_relay({EVERYONE: {"producer_byte_rate": 1000.0}})
    story = Playbook(slow).client(produce(1, size=3000) + framed(b"x")).to_broker(produce(1, size=3000))
    story.fails_at(2.0, CLIENT_PROTOCOL_ERROR, "bytes wanted at offset")


@pytest.mark.parametrize("size", range(10))
def test_a_frame_that_is_no_header(size: int) -> None:
    client_fails(framed(bytes(size)), says="at offset")


def test_a_header_that_cannot_be() -> None:
    client_fails(framed(b"\xff\xff\0\0" + bytes(6)), says="api_key -1 and api_version 0")
    client_fails(framed(b"\0\0\xff\xff" + bytes(6)), says="api_key 0 and api_version -1")


def test_a_body_that_ends_too_early() -> None:
    request = produce(1)
    client_fails(framed(request[4:24]), says="at offset")


VERSIONED = [api for api in WITHOUT_INTERCEPTED.read if api is not None and api.key != API_VERSIONS]
"""The APIs that are read; a broker responds to any version of ApiVersions."""


@pytest.mark.parametrize("api", VERSIONED, ids=lambda api: api.name)
def test_a_version_that_nobody_offered(api: Api) -> None:
    older = [api.oldest - 1] if api.oldest > 0 else []
    for version in (*older, api.newest + 1, 32767):
        client_fails(opaque(1, api.key, version), says=rf"^{api.name} v{version}\b.* v{api.newest}\b")


def test_a_version_that_nobody_offered_ends_it_after_what_was_before() -> None:
    story = Playbook(new_relay())
    story.client_fails(fetch(1) + opaque(2, 0, 99), reason=CLIENT_PROTOCOL_ERROR, says="Produce v99")
    story.to_broker(fetch(1))


def test_no_request_hides_in_an_api_versions_request_that_is_cut_through() -> None:
    """What follows the first part of a large frame is not a frame of its own."""
    hidden = produce(2, size=5000)
    request = opaque(1, API_VERSIONS, 99, bytes((1 << 20) + len(hidden)))
    story = Playbook(new_relay())
    story.client_fails(request[: -len(hidden)], hidden, reason=CLIENT_PROTOCOL_ERROR, says="ApiVersions v99")
    story.to_broker()


def broker_fails(story: Playbook, *chunks: bytes, says: str) -> None:
    story.broker_fails(*chunks, reason=BROKER_PROTOCOL_ERROR, says=says)


def test_a_response_to_no_request() -> None:
    broker_fails(Playbook(new_relay()), responded(7), says=r"correlation_id 7\b")


def test_a_response_to_a_request_without_one() -> None:
    story = Playbook(new_relay()).client(produce(7, acks=0))
    broker_fails(story, produced(7), says=r"correlation_id 7\b")


def test_a_second_response() -> None:
    story = Playbook(new_relay()).client(produce(7)).broker(produced(7)).to_client(produced(7))
    broker_fails(story, produced(7), says=r"correlation_id 7\b")


def test_a_response_out_of_turn() -> None:
    story = Playbook(new_relay()).client(produce(7) + produce(8))
    broker_fails(story, produced(8), says=r"correlation_id 8\b.* 7$")


def test_a_broker_that_speaks_something_else() -> None:
    story = Playbook(new_relay()).client(produce(7))
    broker_fails(story, b"\xff\xff\xff\xff", says="announces -1 bytes")


def test_a_response_that_ends_too_early() -> None:
    story = Playbook(new_relay()).client(produce(7))
    broker_fails(story, framed(produced(7)[4:-1]), says="at offset")
    story = Playbook(new_relay()).client(opaque(7))
    broker_fails(story, framed(b"\0\0\0"), says="at offset 4")


def test_a_response_that_does_not_parse() -> None:
    story = Playbook(new_relay()).client(produce(7))
    broker_fails(story, responded(7, b"\xff\xff\xff\xfe"), says="an array of -2 elements")
