"""The broker's response to ApiVersions, cut to what the proxy reads, on its way through the relay."""

from collections.abc import Iterable
from typing import Any

from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import API_VERSIONS
from tests.support.messages.exchanges import api_versions, milliseconds, opaque
from tests.support.messages.kio_messages import (
    framed,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.stories.playbook import Playbook, new_relay


def offer(version: int, ranges: Iterable[tuple[int, int, int]]) -> Any:
    message = response_type(API_VERSIONS, version)
    key = message.__annotations__["api_keys"].__args__[0]
    fields = {"throttle_time": milliseconds(0)} if version >= 1 else {}
    return message(
        error_code=ErrorCode.none,
        api_keys=tuple(
            key(api_key=api_key, min_version=oldest, max_version=newest) for api_key, oldest, newest in ranges
        ),
        **fields,
    )


def ask(version: int) -> bytes:
    more = {"client_software_name": "c", "client_software_version": "1"} if version >= 3 else {}
    return request_frame(request_type(API_VERSIONS, version)(**more))


def test_every_version_is_cut_alike() -> None:
    offered = [(0, 0, 20), (2, 0, 99), (78, 0, 0), (1, 4, 18), (300, 0, 1)]
    kept = [(0, 0, 13), (2, 0, 99), (1, 4, 18), (300, 0, 1)]
    for version in range(5):
        story = Playbook(new_relay()).client(ask(version)).to_broker(ask(version))
        story.broker(response_frame(offer(version, offered))).to_client(response_frame(offer(version, kept)))


def test_an_older_brokers_v0_response_to_a_newer_version_is_cut_too() -> None:
    """The broker does not know v4 and says so as KIP-511 has it: v0's form, error 35, its own versions."""
    ranges = b"".join(number.to_bytes(2, "big") for number in (18, 0, 3, 0, 0, 99))
    response = b"\0\0\0\1" + b"\0\x23" + b"\0\0\0\2" + ranges
    story = Playbook(new_relay()).client(ask(4)).broker(framed(response))
    story.to_client(framed(response[:-1] + b"\x0d")).idle()


def test_a_client_that_is_too_new_hears_v0_with_error_35() -> None:
    story = Playbook(new_relay()).client(api_versions(1, 5))
    response = b"".join(story.relay.take_to_client())
    assert response[8:10] == b"\0\x23"
    message = read_frame(response_type(API_VERSIONS, 0), response)
    assert message.error_code is ErrorCode.unsupported_version
    assert [(key.api_key, key.min_version, key.max_version) for key in message.api_keys] == [(18, 0, 4)]


def test_a_client_that_then_asks_as_told_is_served() -> None:
    story = Playbook(new_relay()).client(api_versions(1, 5))
    story.relay.take_to_client()
    story.client(ask(4)).to_broker(ask(4))


def test_the_tags_of_other_requests_are_theirs() -> None:
    """Only ApiVersions' response header is without tags; the opaque ones are not looked at."""
    Playbook(new_relay()).client(opaque(1, 17, 1)).to_broker(opaque(1, 17, 1))
