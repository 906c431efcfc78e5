"""The controller mutation quota between a client and a broker: what is rejected, charged and throttled."""

from collections.abc import Iterator
from typing import Any

import pytest

from proxy.admin.messages.fields import MAX_REQUEST_BYTES
from proxy.admin.messages.topics import TopicsApi
from proxy.admin.mutations.mutations import TOPIC_APIS
from proxy.quota.limits.enforcement import OBSERVE
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, CLIENT_CLOSED, RelayError
from proxy.wire.errors import Malformed, UnsupportedVersion
from tests.support.admin.mutation_story import (
    EXISTS,
    FORBIDDEN,
    NOT_THERE,
    THROTTLED,
    TIMED_OUT,
    Story,
    throttle_ms,
)
from tests.support.messages.kio_messages import framed, request_frame, response_frame
from tests.support.messages.mutations import (
    create_partitions,
    create_topics,
    created,
    delete_topics,
    old_create_topics,
    old_delete_topics,
    old_response,
    payload_of,
    topic_id,
)

MISPLACED = 39
INVALID = 42
TOO_LARGE = 44
TWO = {"a": 30, "b": 30}


def three_ways() -> Iterator[tuple[Story, Any, Any]]:
    """Two topics of 30 partitions each, at the first strict version and the last permissive one."""
    story = Story()
    yield story, create_topics(TWO, 6), create_topics(TWO, 5)
    story = Story()
    story.counts.known = dict(TWO)
    yield story, delete_topics(list(TWO), 5), delete_topics(list(TWO), 4)
    story = Story()
    story.counts.known = {"a": 10, "b": 10}
    yield story, create_partitions({"a": 40, "b": 40}, 3), create_partitions({"a": 40, "b": 40}, 2)


@pytest.mark.parametrize("way", [0, 1, 2], ids=["create", "delete", "grow"])
def test_strict_rejects_a_topic_over_the_quota(way: int) -> None:
    story, strict, _ = list(three_ways())[way]
    response = story.send(strict)
    assert story.sent_on == [["a"]]
    assert story.tokens == -8.0
    assert throttle_ms(response) == 4000
    assert story.wait == (4.0, 0.0)


@pytest.mark.parametrize("way", [0, 1, 2], ids=["create", "delete", "grow"])
def test_strict_response_keeps_the_order(way: int) -> None:
    story, strict, _ = list(three_ways())[way]
    assert story.codes(strict) == [("a", 0), ("b", THROTTLED)]


@pytest.mark.parametrize("way", [0, 1, 2], ids=["create", "delete", "grow"])
def test_permissive_admits_both_and_throttles(way: int) -> None:
    story, _, permissive = list(three_ways())[way]
    response = story.send(permissive)
    assert story.sent_on == [["a", "b"]]
    assert story.tokens == -38.0
    assert throttle_ms(response) == 19_000
    assert story.wait == (19.0, 0.0)


@pytest.mark.parametrize("way", [0, 1, 2], ids=["create", "delete", "grow"])
def test_permissive_waits_while_the_client_owes(way: int) -> None:
    """On a new connection, which is not muted."""
    story, _, permissive = list(three_ways())[way]
    story.send(permissive)
    assert story.slept == 0.0
    story.send(permissive)
    assert story.slept == pytest.approx(19.0)


@pytest.mark.parametrize("version", [4, 5])
def test_topics_cost_what_they_have_after_the_earlier_requests(version: int) -> None:
    """A Fetch before the request may wait for minutes."""
    story = Story()
    story.counts.known = {"a": 1}
    story.earlier_requests = lambda: story.counts.known.update(a=20)
    story.send(delete_topics(["a"], version))
    assert story.tokens == 2.0


def test_topics_cost_what_they_have_after_the_wait_for_the_quota() -> None:
    story = Story()
    story.counts.known = {"a": 30, "b": 1}
    story.send(delete_topics(["a"], 4))
    sleep = story._mutations._turns._sleep

    async def grow(seconds: float) -> None:
        await sleep(seconds)
        story.counts.known["b"] = 20

    story._mutations._turns._sleep = grow
    story.send(delete_topics(["b"], 4))
    assert story.tokens == pytest.approx(-20.0)


@pytest.mark.parametrize("way", [0, 1, 2], ids=["create", "delete", "grow"])
def test_permissive_is_dropped_if_its_client_does_not_wait(way: int) -> None:
    story, _, permissive = list(three_ways())[way]
    story.send(permissive)
    story.gone = True
    with pytest.raises(RelayError) as caught:
        story.send(permissive)
    assert caught.value.reason == CLIENT_CLOSED
    assert len(story.sent_on) == 1
    assert story.tokens == -38.0


def test_strict_does_not_wait() -> None:
    story = Story()
    story.send(create_topics(TWO, 5))
    assert story.codes(create_topics({"c": 1}, 6)) == [("c", THROTTLED)]
    assert story.slept == 0.0


def test_rejected_topic_is_admitted_after_the_throttle() -> None:
    story = Story()
    story.codes(create_topics(TWO))
    story.now += 3.999
    assert story.codes(create_topics({"b": 30})) == [("b", THROTTLED)]
    story.now += 0.001
    assert story.codes(create_topics({"b": 30})) == [("b", 0)]
    assert story.wait == (0.0, 0.0), "what crosses is done, and nobody waits before the next"


def test_nothing_is_forwarded_if_all_topics_are_rejected() -> None:
    story = Story()
    story.send(create_topics({"a": 30}))
    assert story.codes(create_topics({"b": 1, "c": 1})) == [("b", THROTTLED), ("c", THROTTLED)]
    assert story.sent_on == [["a"]]


def test_partial_forwards_keep_the_order_of_the_request() -> None:
    story = Story()
    story.rejects = {"c": EXISTS}
    sizes = {"e": 10, "d": 20, "c": 5, "b": 1, "a": 1}
    wanted = [("e", 0), ("d", 0), ("c", EXISTS), ("b", THROTTLED), ("a", THROTTLED)]
    assert story.codes(create_topics(sizes)) == wanted


def test_invalid_topic_gets_the_brokers_error_also_when_the_tokens_are_used_up() -> None:
    """As a controller does, which checks the quota last; nothing is created, and nothing charged."""
    story = Story()
    story.send(create_topics({"a": 30}))
    story.rejects = {"b": EXISTS, "d": INVALID}
    assert story.codes(create_topics({"b": 1, "c": 1, "d": 1})) == [
        ("b", EXISTS),
        ("c", THROTTLED),
        ("d", INVALID),
    ]
    assert story.sent_on == [["a"]]
    assert story.validated == [["b", "c", "d"]]
    assert story.tokens == -8.0
    assert story.wait == (4.0, 0.0)


def test_client_whose_topics_are_all_invalid_is_not_throttled() -> None:
    story = Story()
    story.send(create_topics({"a": 30}))
    story.rejects = {"b": EXISTS}
    assert story.codes(create_topics({"b": 1})) == [("b", EXISTS)]
    assert story.wait == (0.0, 0.0)


def test_deletions_are_not_validated() -> None:
    """Brokers have no such request for them."""
    story = Story()
    story.counts.known = dict(TWO)
    story.send(delete_topics(["a", "b"], 5))
    assert story.sent_on == [["a"]]
    assert story.validated == []


def test_topic_that_cannot_grow_gets_the_brokers_error_also_when_the_tokens_are_used_up() -> None:
    story = Story()
    story.counts.known = {"a": 10, "b": 10, "c": 10}
    story.send(create_partitions({"a": 41}))
    story.rejects = {"b": FORBIDDEN, "d": NOT_THERE}
    wanted = [("b", FORBIDDEN), ("c", THROTTLED), ("d", NOT_THERE)]
    assert story.codes(create_partitions({"b": 40, "c": 40, "d": 40})) == wanted
    assert story.sent_on == [["a"]]
    assert story.validated == [["b", "c", "d"]]
    assert story.tokens == -9.0


def test_assignments_of_new_partitions_are_checked_before_and_after_the_quota() -> None:
    """Their number is checked before it, and their brokers after it, both with the same error."""
    story = Story()
    story.counts.known = {"a": 10, "b": 10, "c": 10, "d": 10}
    story.send(create_partitions({"a": 41}))
    story.rejects = dict.fromkeys("bcd", MISPLACED)
    wanted = [("b", MISPLACED), ("c", THROTTLED), ("d", MISPLACED)]
    request = create_partitions(
        {"b": 12, "c": 12, "d": 12}, assignments={"b": [[1]], "c": [[9], [9]], "d": []}
    )
    assert story.codes(request) == wanted
    assert story.sent_on == [["a"]]
    assert story.tokens == -9.0


def test_topic_without_cost_is_forwarded_and_keeps_its_place() -> None:
    story = Story()
    story.counts.known = dict(TWO)
    story.rejects = {"never": NOT_THERE}
    wanted = [("a", 0), ("b", THROTTLED), ("never", NOT_THERE)]
    assert story.codes(delete_topics(["a", "b", "never"], 5)) == wanted
    assert story.sent_on == [["a", "never"]]


def test_single_response_is_forwarded_unchanged() -> None:
    story = Story(100.0)
    request = create_topics(TWO, 7)
    response = created({"b": 0, "a": EXISTS}, partitions={"b": 30})
    story.responses = [payload_of(response)]
    assert story.send_frame(request_frame(request)) == response_frame(response)
    assert story.asked == [request_frame(request)]
    assert story.tokens == 1100.0 - 30


def test_topic_rejected_by_the_broker_gets_its_tokens_back() -> None:
    story = Story(100.0)
    story.counts.known = {"c": 10, "d": 10}
    story.rejects = dict.fromkeys("acd", FORBIDDEN)
    story.send(create_topics({"a": 30}))
    story.send(delete_topics(["c"]))
    story.send(create_partitions({"d": 40}))
    assert story.tokens == 1100.0
    story.send(create_topics({"b": 30}))
    assert story.tokens == 1070.0


def test_returned_tokens_admit_rejected_topics() -> None:
    story = Story()
    story.counts.known = {"a": 30, "b": 30, "c": 30, "d": 30}
    story.rejects = {"a": FORBIDDEN, "b": FORBIDDEN}
    wanted = [("a", FORBIDDEN), ("b", FORBIDDEN), ("c", 0), ("d", THROTTLED)]
    assert story.codes(delete_topics(["a", "b", "c", "d"], 5)) == wanted
    assert story.sent_on == [["a"], ["b"], ["c"]]


def test_invalid_topics_cost_nothing_while_others_use_the_tokens_up() -> None:
    story = Story()
    story.rejects = {"a": EXISTS, "b": EXISTS}
    sizes = {"a": 30, "b": 30, "c": 30, "d": 30}
    assert story.codes(create_topics(sizes)) == [("a", EXISTS), ("b", EXISTS), ("c", 0), ("d", THROTTLED)]
    assert story.validated == [["a", "b", "c", "d"]]
    assert story.sent_on == [["c"]]
    assert story.tokens == -8.0


def test_error_of_the_whole_request_is_every_topics() -> None:
    """As with more than 10,000 partitions in one request, although each topic alone has fewer."""
    story = Story()
    story.rejects = dict.fromkeys("abc", FORBIDDEN)
    sizes = {"a": 30, "b": 6000, "c": 6000}
    assert story.codes(create_topics(sizes)) == [(name, FORBIDDEN) for name in sizes]
    assert story.sent_on == []
    assert story.tokens == 22.0
    assert story.wait == (0.0, 0.0)


def test_topic_that_exists_by_the_time_of_its_creation_gets_its_tokens_back() -> None:
    """Another client has created it since the broker validated the request."""
    story = Story()
    sizes = {"a": 30, "b": 30, "c": 30}
    valid = dict.fromkeys(sizes, 0)
    story.responses = [payload_of(created(valid)), payload_of(created({"a": EXISTS}))]
    assert story.codes(create_topics(sizes)) == [("a", EXISTS), ("b", 0), ("c", THROTTLED)]
    assert story.tokens == -8.0
    assert story.wait == (4.0, 0.0)


def test_timed_out_topic_stays_charged() -> None:
    story = Story()
    story.responses = [payload_of(created({"a": 0, "b": 0})), payload_of(created({"a": TIMED_OUT}))]
    assert story.codes(create_topics({"a": 30, "b": 1})) == [("a", TIMED_OUT), ("b", THROTTLED)]
    assert story.tokens == -8.0


def test_permissive_without_success_is_not_throttled() -> None:
    story = Story()
    story.send(create_topics({"a": 30}, 5))
    story.rejects = {"b": EXISTS}
    response = story.send(create_topics({"b": 30}, 5))
    assert throttle_ms(response) == 0
    assert story.wait == (0.0, 0.0)


def test_validate_only_is_charged_as_the_controller_does() -> None:
    story = Story()
    assert story.codes(create_topics({"a": 30}, validate_only=True)) == [("a", 0)]
    assert story.tokens == -8.0
    story.counts.known = {"a": 10}
    assert story.codes(create_partitions({"a": 11}, validate_only=True)) == [("a", THROTTLED)]


def test_response_has_the_longer_throttle_time() -> None:
    story = Story()
    story.throttle_ms = 9000
    response = story.send(create_topics(TWO))
    assert throttle_ms(response) == 9000
    assert story.wait == (4.0, 0.0)
    story.throttle_ms = 10
    story.now += 100.0
    assert throttle_ms(story.send(create_topics(TWO))) == 4000


def test_rejection_by_the_brokers_quota_is_forwarded_and_costs_nothing() -> None:
    story = Story(100.0)
    story.rejects = {"b": THROTTLED}
    story.throttle_ms = 700
    response = story.send(create_topics(TWO))
    assert [topic.error_code.value for topic in response.topics] == [0, THROTTLED]
    assert throttle_ms(response) == 700
    assert story.tokens == 1070.0


@pytest.mark.parametrize("version", [0, 1])
def test_response_without_throttle_time_is_delayed(version: int) -> None:
    story = Story()
    story.responses = [old_response({"a": 0, "b": 0}, messages=version == 1)[4:]]
    frame = old_create_topics(TWO, version)
    assert story.send_frame(frame) == old_response({"a": 0, "b": 0}, messages=version == 1)
    assert story.asked == [frame]
    assert story.wait == (19.0, 19.0)


def test_a_wait_that_may_become_shorter_is_told_in_pieces() -> None:
    """Processes share the limit, so this one's part may grow."""
    story = Story()
    story.quota.review_every(0.5)
    response = story.send(create_topics(TWO))
    assert throttle_ms(response) == 500
    assert story.wait == (4.0, 0.0)
    story.responses = [old_response({"a": 0, "b": 0}, messages=True)[4:]]
    story.send_frame(old_create_topics(TWO, 1))
    assert story.slept == pytest.approx(4.0)
    assert story.wait == (30.0, 0.5)


def test_delete_topics_version_that_kio_lacks() -> None:
    story = Story()
    story.counts.known = dict(TWO)
    story.responses = [old_response({"a": 0, "b": NOT_THERE})[4:]]
    assert story.send_frame(old_delete_topics(["a", "b"])) == old_response({"a": 0, "b": NOT_THERE})
    assert story.wait == (4.0, 4.0)


def test_duplicate_topic_costs_nothing() -> None:
    """Brokers reject it before they ask the quota, and response it once."""
    story = Story()
    request = create_topics({"a": 30})
    request = type(request)(
        topics=request.topics * 2 + create_topics({"b": 30, "c": 1}).topics,
        timeout=request.timeout,
        validate_only=False,
    )
    story.rejects = {"a": INVALID}
    assert story.codes(request) == [("a", INVALID), ("b", 0), ("c", THROTTLED)]
    assert story.tokens == -8.0


def test_request_without_topics_is_forwarded() -> None:
    story = Story()
    assert story.codes(create_topics({})) == []
    assert story.codes(delete_topics([])) == []
    assert story.sent_on == [[], []]


def test_client_without_a_quota_is_not_charged() -> None:
    story = Story()
    story.counts.known = {"c": 1}
    assert story.codes(create_topics(TWO), user="v") == [("a", 0), ("b", 0)]
    assert story.codes(delete_topics(["c"]), user="v") == [("c", 0)]
    assert story.counts.questions == []
    assert story.quota.live() == []


def test_observe_mode_admits_all() -> None:
    story = Story(mode=OBSERVE)
    assert story.codes(create_topics(TWO)) == [("a", 0), ("b", 0)]
    assert story.wait == (0.0, 0.0)
    assert story.codes(create_topics(TWO, 5)) == [("a", 0), ("b", 0)]
    assert story.wait == (0.0, 0.0)


def test_topics_by_id() -> None:
    story = Story()
    story.counts.known = dict(TWO)
    response = story.send(delete_topics(ids=[topic_id("b"), topic_id("a")]))
    assert [(topic.topic_id, topic.error_code.value) for topic in response.responses] == [
        (topic_id("b"), 0),
        (topic_id("a"), THROTTLED),
    ]
    assert response.responses[1].name is None
    assert story.sent_on == [["b"]]
    assert story.tokens == -8.0


@pytest.mark.parametrize("api", TOPIC_APIS.values(), ids=lambda api: api.versions.name)
def test_unsupported_version_is_rejected(api: TopicsApi) -> None:
    header = api.versions.key.to_bytes(2, "big") + (api.versions.newest + 1).to_bytes(2, "big")
    with pytest.raises(UnsupportedVersion):
        Story().send_frame(framed(header + bytes(30)))


def test_request_over_the_limit_is_rejected() -> None:
    frame = request_frame(delete_topics(["a"]))
    with pytest.raises(Malformed, match="DeleteTopics"):
        Story().send_frame(framed(frame[4:] + bytes(MAX_REQUEST_BYTES)))


def test_malformed_request_is_a_protocol_error_of_the_client() -> None:
    frame = request_frame(create_topics(TWO))
    with pytest.raises(Malformed):
        Story().send_frame(frame[:-20])


def test_malformed_response_is_a_protocol_error_of_the_broker() -> None:
    story = Story()
    story.responses = [payload_of(created({"a": 0}))[:-4]]
    with pytest.raises(RelayError, match="CreateTopics v7") as caught:
        story.send(create_topics({"a": 1}))
    assert caught.value.reason == BROKER_PROTOCOL_ERROR
    assert story.tokens == 21.0, "it may have been done"


@pytest.mark.parametrize("mode", ["enforce", OBSERVE])
def test_throttle_is_in_the_clients_usage(mode: str) -> None:
    story = Story(mode=mode)
    story.send(create_topics({"a": 30, "b": 30}, 5))
    [bucket] = story.quota.live()
    [client] = story.usage.close_interval()
    [used] = client.take()
    assert bucket.throttle_seconds > 0
    assert (used.api_key, used.tally.quota) == (19, "controller_mutation_rate")
    assert used.tally.throttled_requests == bucket.throttled_requests
    assert used.tally.throttle_seconds == bucket.throttle_seconds


# Each topic of a story's CreateTopics has one config: a topic of 9,999 partitions takes 10,001 changes.


@pytest.mark.parametrize("version", [5, 6])
def test_a_request_of_too_many_changes_stays_charged(version: int) -> None:
    """As in a controller, which rejects it when it has charged it."""
    story = Story()
    story.rejects = {"a": TOO_LARGE}
    assert story.codes(create_topics({"a": 9_999}, version)) == [("a", TOO_LARGE)]
    assert story.tokens == 22.0 - 9_999


def test_a_request_of_too_many_changes_is_rejected_for_the_quota_first() -> None:
    story = Story()
    story.send(create_topics({"a": 30, "b": 30}, 6))
    story.rejects = {"c": TOO_LARGE}
    assert story.codes(create_topics({"c": 9_999}, 6)) == [("c", THROTTLED)]


@pytest.mark.parametrize("partitions", [9_998, 10_001])
def test_a_policy_of_the_controller_costs_nothing(partitions: int) -> None:
    """It applies before the quota, as the bound of 10,000 partitions does."""
    story = Story()
    story.rejects = {"a": TOO_LARGE}
    assert story.codes(create_topics({"a": partitions}, 6)) == [("a", TOO_LARGE)]
    assert story.tokens == 22.0
