"""The permits that topics cost, measured as the tokens that requests take."""

from typing import Any

import pytest

from proxy.admin.mutations.permits import MOST_PARTITIONS
from proxy.upstream.partition_counts import TopicDefaults
from proxy.upstream.partitions import Partitions
from proxy.wire.cursor import NO_ID
from tests.support.admin.mutation_story import EXISTS, NOT_THERE, Story
from tests.support.messages.mutations import create_partitions, create_topics, delete_topics, topic_id

RATE = 10_000.0
BURST = 110_000.0


@pytest.fixture
def story() -> Story:
    return Story(RATE)


def tokens(story: Story) -> float:
    left = story.tokens
    assert left is not None
    return left


def cost(story: Story, message: Any, user: str = "u") -> float:
    """Of one request."""
    before = BURST if not story.quota.live() else tokens(story)
    story.send(message, user)
    return before - tokens(story)


def test_create_topics_costs_its_partitions(story: Story) -> None:
    story.counts.num_partitions = 6
    assert cost(story, create_topics({"a": 3})) == 3
    assert cost(story, create_topics({"b": [[1], [1, 2]]})) == 2
    assert cost(story, create_topics({"c": -1, "d": 1})) == 7


def test_wrong_default_is_corrected_by_the_response(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.counts.num_partitions = 6

    async def assumed(node_id: int, now: float) -> TopicDefaults:
        return TopicDefaults(1)

    monkeypatch.setattr(story.counts, "default", assumed)
    assert cost(story, create_topics({"a": -1})) == 6


@pytest.mark.parametrize("partitions", [0, -2, -(2**31)])
def test_invalid_partition_count_costs_nothing(story: Story, partitions: int) -> None:
    story.rejects = {"a": 37}
    assert cost(story, create_topics({"a": 1, "b": 1})) == 1
    assert cost(story, create_topics({"a": partitions})) == 0


def test_charge_before_forwarding_is_bounded() -> None:
    story = Story(2.0)
    story.responses = [b"the client disconnects before the response"]
    with pytest.raises(Exception, match="CreateTopics"):
        story.send(create_topics({"a": 2**31 - 1}))
    assert story.tokens == 22.0 - MOST_PARTITIONS


def test_create_partitions_costs_the_difference(story: Story) -> None:
    story.counts.known = {"a": 10}
    assert cost(story, create_partitions({"a": 14})) == 4


def test_total_that_is_not_larger_costs_nothing(story: Story) -> None:
    story.counts.known = {"a": 10}
    story.rejects = {"a": 37}
    assert cost(story, create_topics({"warm-up": 1})) == 1
    assert cost(story, create_partitions({"a": 10})) == 0
    assert cost(story, create_partitions({"a": 3})) == 0


def test_delete_topics_costs_its_partitions(story: Story) -> None:
    story.counts.known = {"a": 10, "b": 5}
    assert cost(story, delete_topics(["a"])) == 10
    assert cost(story, delete_topics(ids=[topic_id("b")])) == 5


def test_unknown_topic_costs_nothing(story: Story) -> None:
    story.rejects = {"a": NOT_THERE}
    assert cost(story, create_topics({"warm-up": 1})) == 1
    assert cost(story, delete_topics(["a"])) == 0
    assert cost(story, create_partitions({"a": 5})) == 0


def test_unknown_topic_that_exists_is_charged_afterwards(story: Story) -> None:
    """The broker's Metadata was behind, and nothing of the topic has passed here."""
    assert cost(story, delete_topics(["a"])) == 1
    assert cost(story, create_partitions({"b": 5})) == 4


@pytest.mark.parametrize("version", [2, 5, 7])
def test_created_topic_is_remembered_while_metadata_is_behind(story: Story, version: int) -> None:
    assert cost(story, create_topics({"a": 30}, version)) == 30
    assert cost(story, create_partitions({"a": 35})) == 5
    assert cost(story, delete_topics(["a"])) == 35


def test_topic_created_by_another_client_is_remembered(story: Story) -> None:
    story.send(create_topics({"a": 30, "b": -1}), user="without a quota")
    assert cost(story, delete_topics(["a"])) == 30


def test_grown_topic_is_remembered_while_metadata_is_behind(story: Story) -> None:
    story.counts.known = {"a": 10}
    assert cost(story, create_partitions({"a": 20})) == 10
    assert cost(story, create_partitions({"a": 25})) == 5
    assert cost(story, delete_topics(["a"])) == 25


def test_grown_topic_is_remembered_by_id(story: Story) -> None:
    assert cost(story, create_topics({"a": 30})) == 30
    story.counts.known = {"a": 10}
    assert cost(story, delete_topics(ids=[topic_id("a")])) == 30


def test_larger_charge_counts_if_ids_differ_or_are_missing(story: Story) -> None:
    """Which of the two there is now, the ids do not tell."""
    story.counts.known = {"a": 10}
    story.recent.note("a", Partitions(5, b"another topic's "), story.now)
    assert cost(story, create_partitions({"a": 12})) == 7
    story.recent.note("a", Partitions(5, NO_ID), story.now)
    assert cost(story, delete_topics(["a"])) == 10


def test_validate_only_is_not_remembered(story: Story) -> None:
    story.send(create_topics({"a": 30}, validate_only=True))
    story.rejects = {"a": NOT_THERE}
    assert cost(story, delete_topics(["a"])) == 0


def test_failure_is_not_remembered(story: Story) -> None:
    story.rejects = {"a": EXISTS}
    story.send(create_topics({"warm-up": 1, "a": 30}))
    story.rejects = {"a": NOT_THERE}
    assert cost(story, delete_topics(["a"])) == 0


def test_deleted_topic_is_not_remembered(story: Story) -> None:
    story.send(create_topics({"a": 30}))
    story.send(delete_topics(["a"]))
    assert story.recent.recall("a", story.now) is None
    story.send(create_topics({"b": 30}))
    story.counts.known = {"b": 30}
    story.send(delete_topics(ids=[topic_id("b")]))
    assert story.recent.recall("b", story.now) is None


def test_invalid_topics_are_not_looked_up(story: Story) -> None:
    request = delete_topics(["a", "b"])
    story.rejects = {"a": 42}
    story.counts.known = {"a": 3, "b": 3}
    doubled = type(request)(topics=(request.topics[0], *request.topics), timeout=request.timeout)
    assert cost(story, doubled) == 3
    assert story.counts.questions == [["b"]]


def test_topics_are_not_charged_while_the_broker_is_unavailable(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    story.counts.unreachable = True
    story.rejects = {"a": NOT_THERE}
    assert cost(story, create_topics({"warm-up": 1})) == 1
    assert cost(story, delete_topics(["a"])) == 0
    assert cost(story, delete_topics(["a"])) == 0
    [record] = caplog.records
    assert record.message.endswith(": gone"), "once for both"
