"""What topics cost: seen in the tokens that requests leave."""

import pytest

from proxy.admin.mutations.permits import MOST_PARTITIONS
from proxy.upstream.partitions import Partitions
from proxy.wire.views import NO_ID
from tests.support.messages.mutations import create_partitions, create_topics, delete_topics, topic_id
from tests.support.stories.mutation_story import EXISTS, NOT_THERE, Story

RATE = 10_000.0
BURST = 110_000.0


@pytest.fixture
def story():
    return Story(RATE)


def cost(story, message, user="u"):
    """Of one request."""
    before = BURST if not story.quota.live() else story.tokens
    story.send(message, user)
    return before - story.tokens


def test_creations(story):
    story.counts.num_partitions = 6
    assert cost(story, create_topics({"a": 3})) == 3
    assert cost(story, create_topics({"b": [[1], [1, 2]]})) == 2
    assert cost(story, create_topics({"c": -1, "d": 1})) == 7


def test_a_default_that_the_broker_told_wrong_is_set_right(story):
    story.counts.num_partitions = 6

    async def assumed(node_id, now):
        return 1

    story.counts.default = assumed
    assert cost(story, create_topics({"a": -1})) == 6


@pytest.mark.parametrize("partitions", [0, -2, -(2**31)])
def test_a_number_that_is_none_costs_nothing(story, partitions):
    story.rejects = {"a": 37}
    assert cost(story, create_topics({"a": 1, "b": 1})) == 1
    assert cost(story, create_topics({"a": partitions})) == 0


def test_a_number_out_of_reach_is_no_debt_for_years():
    story = Story(2.0)
    story.answers = [b"the client is gone before the answer comes"]
    with pytest.raises(Exception, match="CreateTopics"):
        story.send(create_topics({"a": 2**31 - 1}))
    assert story.tokens == 22.0 - MOST_PARTITIONS


def test_growth(story):
    story.counts.known = {"a": 10}
    assert cost(story, create_partitions({"a": 14})) == 4


def test_a_count_that_does_not_grow_costs_nothing(story):
    story.counts.known = {"a": 10}
    story.rejects = {"a": 37}
    assert cost(story, create_topics({"warm-up": 1})) == 1
    assert cost(story, create_partitions({"a": 10})) == 0
    assert cost(story, create_partitions({"a": 3})) == 0


def test_deletions(story):
    story.counts.known = {"a": 10, "b": 5}
    assert cost(story, delete_topics(["a"])) == 10
    assert cost(story, delete_topics(ids=[topic_id("b")])) == 5


def test_topics_that_nobody_knows_cost_nothing(story):
    story.rejects = {"a": NOT_THERE}
    assert cost(story, create_topics({"warm-up": 1})) == 1
    assert cost(story, delete_topics(["a"])) == 0
    assert cost(story, create_partitions({"a": 5})) == 0


def test_a_topic_that_was_there_after_all_is_charged_afterwards(story):
    """The broker's Metadata was behind, and nothing of the topic has passed here."""
    assert cost(story, delete_topics(["a"])) == 1
    assert cost(story, create_partitions({"b": 5})) == 4


@pytest.mark.parametrize("version", [2, 5, 7])
def test_what_was_just_created_has_its_partitions_though_metadata_is_behind(story, version):
    assert cost(story, create_topics({"a": 30}, version)) == 30
    assert cost(story, create_partitions({"a": 35})) == 5
    assert cost(story, delete_topics(["a"])) == 35


def test_what_others_just_created_as_well(story):
    story.send(create_topics({"a": 30, "b": -1}), user="without a quota")
    assert cost(story, delete_topics(["a"])) == 30


def test_what_just_grew_has_its_new_partitions_though_metadata_is_behind(story):
    story.counts.known = {"a": 10}
    assert cost(story, create_partitions({"a": 20})) == 10
    assert cost(story, create_partitions({"a": 25})) == 5
    assert cost(story, delete_topics(["a"])) == 25


def test_by_id_what_just_grew_as_well(story):
    assert cost(story, create_topics({"a": 30})) == 30
    story.counts.known = {"a": 10}
    assert cost(story, delete_topics(ids=[topic_id("a")])) == 30


def test_of_a_topic_of_the_same_name_what_charges_more_counts(story):
    """Which of the two there is now, the ids do not tell."""
    story.counts.known = {"a": 10}
    story.recent.note("a", Partitions(5, b"another topic's "), story.now)
    assert cost(story, create_partitions({"a": 12})) == 7
    story.recent.note("a", Partitions(5, NO_ID), story.now)
    assert cost(story, delete_topics(["a"])) == 10


def test_what_was_only_validated_is_not_remembered(story):
    story.send(create_topics({"a": 30}, validate_only=True))
    story.rejects = {"a": NOT_THERE}
    assert cost(story, delete_topics(["a"])) == 0


def test_what_failed_is_not_remembered(story):
    story.rejects = {"a": EXISTS}
    story.send(create_topics({"warm-up": 1, "a": 30}))
    story.rejects = {"a": NOT_THERE}
    assert cost(story, delete_topics(["a"])) == 0


def test_what_is_deleted_is_forgotten(story):
    story.send(create_topics({"a": 30}))
    story.send(delete_topics(["a"]))
    assert story.recent.recall("a", story.now) is None
    story.send(create_topics({"b": 30}))
    story.counts.known = {"b": 30}
    story.send(delete_topics(ids=[topic_id("b")]))
    assert story.recent.recall("b", story.now) is None


def test_metadata_is_not_asked_about_topics_that_brokers_reject(story):
    request = delete_topics(["a", "b"])
    story.rejects = {"a": 42}
    story.counts.known = {"a": 3, "b": 3}
    doubled = type(request)(topics=(request.topics[0], *request.topics), timeout=request.timeout)
    assert cost(story, doubled) == 3
    assert story.counts.questions == [["b"]]


def test_while_the_broker_cannot_be_asked_topics_pass(story, caplog):
    story.counts.unreachable = True
    story.rejects = {"a": NOT_THERE}
    assert cost(story, create_topics({"warm-up": 1})) == 1
    assert cost(story, delete_topics(["a"])) == 0
    assert cost(story, delete_topics(["a"])) == 0
    [record] = caplog.records
    assert record.message.endswith(": gone"), "once for both"
