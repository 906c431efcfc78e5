"""Subscriptions and assignments whose topics collide are found, in every version, and others are not."""

import struct
from dataclasses import replace
from typing import Any, Final

import pytest

from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.keyed.consumer_protocol import (
    MESSAGES_AT_MOST,
    NEWEST,
    TOPICS_AT_MOST,
    check_consumer_protocol,
)
from proxy.wire.keyed.keyed_arrays import UNCHECKED
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame, request_type, versions
from tests.support.messages.random_messages import sample

JOIN_GROUP, SYNC_GROUP = 11, 14
CASES: Final = [(api_key, version) for api_key in NEWEST for version in versions(api_key)]
ARRAYS: Final = {JOIN_GROUP: ("protocols", "metadata"), SYNC_GROUP: ("assignments", "assignment")}


def string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def partitions(topics: list[str]) -> bytes:
    return struct.pack(">i", len(topics)) + b"".join(
        string(topic) + struct.pack(">ii", 1, 0) for topic in topics
    )


def subscription(topics: list[str], version: int = 3) -> bytes:
    """A subscription to one topic, with these owned partitions."""
    head = struct.pack(">hi", version, 1) + string("t") + struct.pack(">i", -1)
    return head + partitions(topics) + struct.pack(">i", 7) + string("rack")


def assignment(topics: list[str]) -> bytes:
    return struct.pack(">h", 3) + partitions(topics) + struct.pack(">i", -1)


def message(api_key: int, topics: list[str]) -> bytes:
    return subscription(topics) if api_key == JOIN_GROUP else assignment(topics)


def request(api_key: int, version: int, messages: list[bytes], protocol: str = "consumer") -> Any:
    array, field = ARRAYS[api_key]
    made = sample(request_type(api_key, version))
    [element] = getattr(made, array)[:1]
    elements = tuple(replace(element, **{field: each}) for each in messages)
    typed = {"protocol_type": protocol} if hasattr(made, "protocol_type") else {}
    return replace(made, **{array: elements}, **typed)


def check(made: Any, cut: int = 0) -> int:
    """Check a request; `cut`: how many of its last bytes have not arrived."""
    frame = request_frame(made)
    reader = Reader([frame], LENGTH_SIZE)
    header = read_request_header(reader)
    pieces = [frame[: len(frame) - cut]]
    return check_consumer_protocol(pieces, reader.offset, header.api_key, header.api_version, cut == 0)


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_equal_topics_are_found_in_every_version(api_key: int, version: int) -> None:
    check(request(api_key, version, [message(api_key, ["t"] * UNCHECKED)]))
    with pytest.raises(Malformed, match="equal or collide"):
        check(request(api_key, version, [b"", message(api_key, ["t"] * (UNCHECKED + 1))]))


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_other_topics_are_no_error(api_key: int, version: int) -> None:
    topics = [f"topic-{at}" for at in range(3000)]
    assert check(request(api_key, version, [message(api_key, topics)] * 2)) >= 6000


@pytest.mark.parametrize("api_key", [JOIN_GROUP, SYNC_GROUP])
def test_equal_topics_in_very_many_messages_are_found(api_key: int) -> None:
    equal = message(api_key, ["t"] * UNCHECKED)
    check(request(api_key, 5, [equal] * 60))
    with pytest.raises(Malformed, match="equal or collide"):
        check(request(api_key, 5, [equal] * 70))


@pytest.mark.parametrize("api_key", [JOIN_GROUP, SYNC_GROUP])
def test_topics_and_messages_are_bounded(api_key: int) -> None:
    """The event loop serves nobody else while it reads them."""
    half = message(api_key, [f"{at * 7919:08x}-name" for at in range(TOPICS_AT_MOST // 2 + 1)])
    check(request(api_key, 5, [half]))
    with pytest.raises(Malformed, match="more than 45000 topics"):
        check(request(api_key, 5, [half, half]))
    check(request(api_key, 5, [b""] * MESSAGES_AT_MOST))
    with pytest.raises(Malformed, match="10001 elements"):
        check(request(api_key, 5, [b""] * (MESSAGES_AT_MOST + 1)))


def test_very_many_subscribed_topics_are_bounded() -> None:
    names = [f"{at:x}" for at in range(TOPICS_AT_MOST + 1)]
    many = struct.pack(">hi", 1, len(names)) + b"".join(map(string, names)) + struct.pack(">ii", -1, 0)
    with pytest.raises(Malformed, match="more than 45000 topics"):
        check(request(JOIN_GROUP, 5, [many]))


def test_a_subscription_of_version_0_has_no_partitions() -> None:
    check(request(JOIN_GROUP, 5, [subscription(["t"] * 500, version=0)]))


@pytest.mark.parametrize(("api_key", "version"), [(JOIN_GROUP, 9), (SYNC_GROUP, 5)])
def test_other_protocols_are_not_read(api_key: int, version: int) -> None:
    assert check(request(api_key, version, [message(api_key, ["t"] * 500)], protocol="connect")) == 0


@pytest.mark.parametrize("api_key", [JOIN_GROUP, SYNC_GROUP])
@pytest.mark.parametrize(
    "other",
    [bytes(500), b"\xff" * 500, b"\x00\x01\x00\x00\x00\x0f" + b"worker-1:8083" * 50, b"{" * 200],
)
def test_anything_else_is_left_to_the_members(api_key: int, other: bytes) -> None:
    check(request(api_key, 5, [other]))


def test_a_message_that_ends_too_early_is_checked_as_far_as_it_goes() -> None:
    with pytest.raises(Malformed, match="equal"):
        check(request(JOIN_GROUP, 5, [subscription(["t"] * 500)[:-800]]))


def test_a_part_of_a_request() -> None:
    """A coordinator reads a subscription before it stores it, and an assignment afterwards."""
    topics = [f"topic-{at}" for at in range(500)]
    with pytest.raises(Malformed, match="too large"):
        check(request(JOIN_GROUP, 5, [subscription(topics)]), cut=100)
    check(request(JOIN_GROUP, 5, [subscription(topics)], protocol="connect"), cut=100)
    check(request(SYNC_GROUP, 5, [assignment(topics)]), cut=100)


def test_unknown_versions_and_other_requests_are_not_read() -> None:
    assert check_consumer_protocol([bytes(5000)], 4, JOIN_GROUP, 10) == 0
    assert check_consumer_protocol([bytes(5000)], 4, 12, 0) == 0


def test_every_version_is_known() -> None:
    assert all(max(versions(api_key)) == newest for api_key, newest in NEWEST.items())
