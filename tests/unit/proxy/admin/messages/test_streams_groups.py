"""Heartbeats and descriptions of streams groups, as kio writes them."""

from dataclasses import replace

import pytest

from proxy.admin.messages.streams_groups import (
    HEARTBEAT,
    MAX_TOPICS,
    MISSING_INTERNAL_TOPICS,
    Heartbeat,
    HeartbeatStatus,
    Subtopology,
    describe_request,
    read_described_topology,
    read_heartbeat,
    read_heartbeat_status,
)
from proxy.admin.yielder import Yielder
from proxy.wire.api_keys import STREAMS_GROUP_DESCRIBE, STREAMS_GROUP_HEARTBEAT
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import read_frame, request_frame, request_type, versions
from tests.support.messages.mutations import payload_of, to_end
from tests.support.messages.streams_groups import described, heartbeat, heartbeat_response

UNAUTHORIZED = "; Unauthorized to CREATE on topics a."


def test_the_newest_version() -> None:
    assert versions(STREAMS_GROUP_HEARTBEAT)[-1] == HEARTBEAT.newest


def read(frame: bytes) -> Heartbeat:
    header = read_request_header(Reader([frame], LENGTH_SIZE))
    return to_end(read_heartbeat(header, frame[LENGTH_SIZE:], Yielder()))


def test_a_heartbeat_with_a_topology() -> None:
    sent = heartbeat("group", "m", ["a", "b"], sources=["s", "t"], repartitions={"c": 3, "a": 0})
    sent = replace(sent, instance_id="i", rack_id="rack")
    [one] = sent.topology.subtopologies
    other = replace(one, state_changelog_topics=(), repartition_source_topics=one.state_changelog_topics[1:])
    sent = replace(sent, topology=replace(sent.topology, subtopologies=(one, other)))
    first = Subtopology(["s", "t"], ["a", "b"], {"c": 3, "a": 0})
    second = Subtopology(["s", "t"], [], {"b": 0})
    assert read(request_frame(sent)) == Heartbeat("group", [first, second])


def test_a_heartbeat_without_a_topology() -> None:
    assert read(request_frame(heartbeat("group", "m", epoch=3))) == Heartbeat("group", None)


def test_a_topology_without_internal_topics() -> None:
    assert read(request_frame(heartbeat("group", "m", []))) == Heartbeat(
        "group", [Subtopology(["source"], [], {})]
    )


def test_more_topics_than_a_controller_creates() -> None:
    names = [str(number) for number in range(MAX_TOPICS + 1)]
    with pytest.raises(Malformed, match=f"{MAX_TOPICS + 1} topics"):
        read(request_frame(heartbeat("group", "m", names)))
    half = heartbeat("group", "m", names[: MAX_TOPICS // 2])
    topology = replace(half.topology, subtopologies=half.topology.subtopologies * 2)
    with pytest.raises(Malformed, match="topics"):
        read(request_frame(replace(half, topology=topology)))


def test_a_heartbeat_that_ends_early() -> None:
    with pytest.raises(Malformed):
        read(request_frame(heartbeat("group", "m", ["a"]))[:80])


@pytest.mark.parametrize(
    ("statuses", "error_code", "complete", "creates"),
    [
        ({}, 0, True, False),
        ({}, 25, False, False),
        ({1: "source"}, 0, False, False),
        ({5: "Assignment delayed"}, 0, True, False),
        ({2: "x", MISSING_INTERNAL_TOPICS: "a, b"}, 0, False, True),
        ({MISSING_INTERNAL_TOPICS: "a" + UNAUTHORIZED}, 0, False, False),
        # The client has sent a config with this value.
        ({MISSING_INTERNAL_TOPICS: f"a; Creation failed: a ({UNAUTHORIZED})"}, 0, False, True),
    ],
)
def test_what_a_response_says(
    statuses: dict[int, str], error_code: int, complete: bool, creates: bool
) -> None:
    payload = payload_of(heartbeat_response(statuses, error_code), 1)
    assert read_heartbeat_status(payload) == HeartbeatStatus(complete, creates)


def test_the_request_for_a_description() -> None:
    header = read_request_header(Reader([request_frame(heartbeat("g", "m"), 77)], LENGTH_SIZE))
    frame = describe_request(header, "g")
    asked = read_request_header(Reader([frame], LENGTH_SIZE))
    assert (asked.api_key, asked.api_version, asked.correlation_id) == (STREAMS_GROUP_DESCRIBE, 0, 77)
    request = read_frame(request_type(STREAMS_GROUP_DESCRIBE, 0), frame)
    assert request.group_ids == ("g",)
    assert not request.include_authorized_operations


def test_the_described_topology() -> None:
    payload = payload_of(described("g", ["a", "b"], {"c": 4}), 1)
    topology = to_end(read_described_topology(payload, Yielder()))
    assert topology == [Subtopology(["source"], ["a", "b"], {"c": 4})]


def test_descriptions_without_a_topology() -> None:
    response = described("g", [])
    [group] = response.groups
    for groups in ((), (replace(group, topology=None),)):
        payload = payload_of(replace(response, groups=groups), 1)
        assert to_end(read_described_topology(payload, Yielder())) == []
    [bare] = replace(
        response, groups=(replace(group, topology=replace(group.topology, subtopologies=None)),)
    ).groups
    payload = payload_of(replace(response, groups=(bare,)), 1)
    assert to_end(read_described_topology(payload, Yielder())) == []
