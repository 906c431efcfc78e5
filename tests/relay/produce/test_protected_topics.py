"""Produce requests to topics of the proxy: rejected for their partitions alone, in every version."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.relay.close_reasons import PRODUCE_REJECTED
from proxy.relay.counters.traffic import Traffic
from proxy.wire.protected_topics import ProtectedTopics
from tests.support.messages.kio_messages import (
    LENGTH,
    parts_of,
    read_frame,
    response_type,
    versions,
)
from tests.support.messages.produce import produce_request, produce_response
from tests.support.messages.requests import TOPIC_IDS_FROM
from tests.support.stories.playbook import EVERYONE, START, Playbook, Quotas, new_relay

MIB = 1 << 20
OURS, LIKE_OURS, HOT = "__quota_proxy_config", "__quota_proxy_config_of_bob", "hot"
IDS = {OURS: UUID(int=1), "t": UUID(int=2), LIKE_OURS: UUID(int=3), HOT: UUID(int=4)}
NAMES = {topic_id: name for name, topic_id in IDS.items()}
DENIED = ErrorCode.topic_authorization_failed
every_version = pytest.mark.parametrize("version", versions(0))
REJECTING = Resources({HOT: {PRODUCER_BYTE_RATE.name: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})


def protected() -> ProtectedTopics:
    topics = ProtectedTopics(frozenset([OURS, "__quota_proxy_usage"]))
    topics.learn(frozenset([IDS[OURS].bytes]))
    return topics


def story(
    quotas: Quotas | None = None, traffic: Traffic | None = None, resources: Resources = NO_RESOURCES
) -> Playbook:
    return Playbook(new_relay(quotas, traffic, resources=resources, protected=protected()))


def request(number: int, sizes: Mapping[str, Iterable[int]], version: int = 9, acks: int = -1) -> bytes:
    return produce_request(number, sizes, IDS, version=version, acks=acks)


def response(number: int, partitions: Mapping[str, Iterable[int]], version: int = 9) -> bytes:
    return produce_response(number, partitions, IDS, version=version)


def name_of(topic: Any, version: int) -> str:
    return NAMES[topic.topic_id] if version >= TOPIC_IDS_FROM else topic.name


def codes(told: Playbook, version: int = 9) -> dict[str, dict[int, ErrorCode]]:
    """What the client reads: error codes by topic and partition."""
    message = read_frame(response_type(0, version), b"".join(told.relay.take_to_client()))
    return {
        name_of(topic, version): {each.index: each.error_code for each in topic.partition_responses}
        for topic in message.responses
    }


@every_version
def test_no_record_reaches_a_topic_of_the_proxy(version: int) -> None:
    told = story().client(request(1, {OURS: [100, 200]}, version)).to_broker()
    assert codes(told, version) == {OURS: {0: DENIED, 1: DENIED}}


@every_version
def test_the_rest_of_a_request_goes_on(version: int) -> None:
    told = story().client(request(1, {"t": [10, 20], OURS: [100], LIKE_OURS: [30]}, version))
    told.to_broker(request(1, {"t": [10, 20], LIKE_OURS: [30]}, version))
    told.broker(response(1, {"t": [0, 1], LIKE_OURS: [0]}, version))
    none = ErrorCode.none
    assert codes(told, version) == {"t": {0: none, 1: none}, LIKE_OURS: {0: none}, OURS: {0: DENIED}}


@every_version
@pytest.mark.parametrize("by_partition", [False, True])
def test_other_requests_go_on_as_they_came(version: int, by_partition: bool) -> None:
    traffic = Traffic(topic_partitions=by_partition)
    every: list[dict[str, list[int]]] = [{}, {"t": []}, {"t": [10]}, {LIKE_OURS: [10, 20], "t": [5]}]
    for sizes in every:
        frame = request(1, sizes, version)
        story(traffic=traffic).client(frame).to_broker(frame)


def test_items_that_are_read_anyway_are_enough() -> None:
    told = story(traffic=Traffic(topic_partitions=True)).client(request(1, {"t": [10], OURS: [100]}))
    told.to_broker(request(1, {"t": [10]}))


def test_quotas_reject_the_partitions_that_they_would_have_rejected() -> None:
    told = story(resources=REJECTING)
    first = request(1, {HOT: [1500]})
    told.client(first).to_broker(first).broker(response(1, {HOT: [0]}))
    told.relay.take_to_client()
    told.client(request(2, {OURS: [10], HOT: [300], "t": [20]})).to_broker(request(2, {"t": [20]}))
    told.broker(response(2, {"t": [0]}))
    assert codes(told) == {
        "t": {0: ErrorCode.none},
        OURS: {0: DENIED},
        HOT: {0: ErrorCode.not_enough_replicas},
    }


def test_what_is_sent_without_the_right_to_is_charged_to_its_client() -> None:
    quotas = {EVERYONE: {"producer_byte_rate": 1000.0}}
    frame = request(1, {OURS: [3000]})
    story(quotas=quotas).client(frame).to_broker().muted((len(frame) - LENGTH - 1000) / 1000)
    one = story(quotas=quotas).client(request(1, {OURS: [3000], "t": [10]}))
    one.to_broker(request(1, {"t": [10]}))
    assert one.relay.next_timer > START + 2.0


def test_a_producer_that_awaits_no_response_loses_its_connection() -> None:
    told = story().client(request(1, {OURS: [100]}, acks=0)).to_broker().to_client()
    told.fails_at(1.0, PRODUCE_REJECTED, "acks=0 .*topic of the proxy")


@pytest.mark.parametrize("sizes", [{OURS: [2 * MIB]}, {"t": [2 * MIB], OURS: [10]}], ids=["first", "last"])
@pytest.mark.parametrize("by_partition", [False, True])
def test_a_large_request_never_reaches_its_end(
    sizes: Mapping[str, Iterable[int]], by_partition: bool
) -> None:
    frame = request(1, sizes)
    head, *rest = parts_of(frame, [MIB + 100, 2 * MIB - 100, 2 * MIB + 100])
    told = story(traffic=Traffic(topic_partitions=by_partition))
    says = "large .*topic of the proxy"
    if next(iter(sizes)) == OURS:
        told.client_fails(head, reason=PRODUCE_REJECTED, says=says)
    else:
        told.client(head).client_fails(*rest, reason=PRODUCE_REJECTED, says=says)
    assert len(b"".join(told.relay.take_to_broker())) < len(frame)


def test_a_large_request_to_other_topics_goes_on() -> None:
    for sizes in ({"t": [2 * MIB]}, {"t": [2 * MIB], LIKE_OURS: [10]}, {"t": [10], LIKE_OURS: [2 * MIB]}):
        frame = request(1, sizes)
        story().client(*parts_of(frame, [MIB + 100, 2 * MIB - 100])).to_broker(frame)


def test_between_brokers_nothing_is_protected() -> None:
    frame = request(1, {OURS: [100]})
    Playbook(new_relay()).client(frame).to_broker(frame)
