"""The ids of protected topics: from every cluster, and from the next broker if one cannot be asked."""

from collections.abc import Mapping, Sequence

import pytest

from proxy.admin import protected_topic_ids
from proxy.admin.protected_topic_ids import ProtectedTopicIds
from proxy.errors import UpstreamUnavailable
from proxy.wire.protected_topics import ProtectedTopics

OLD, NEW, OTHER = b"\1" * 16, b"\2" * 16, b"\3" * 16


class Cluster:
    """Its brokers, each with the ids that it knows; None in place of them: it cannot be asked."""

    def __init__(self, *brokers: dict[str, bytes] | None) -> None:
        self.brokers = list(brokers)

    def nodes(self) -> Sequence[int]:
        return range(len(self.brokers))

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        ids = self.brokers[node_id]
        if ids is None:
            raise UpstreamUnavailable("away")
        return {name: ids.get(name) for name in names}


async def test_every_cluster_tells_its_ids() -> None:
    topics = ProtectedTopics(frozenset(["ours", "shares"]))
    one, other = Cluster({"ours": OLD, "theirs": NEW}), Cluster({"ours": OTHER})
    assert await ProtectedTopicIds(topics, [one, other]).look()
    assert topics.has_id(OLD)
    assert topics.has_id(OTHER)
    assert not topics.has_id(NEW)


async def test_a_topic_that_is_made_again_has_both_ids() -> None:
    topics = ProtectedTopics(frozenset(["ours"]))
    cluster = Cluster({"ours": OLD})
    ids = ProtectedTopicIds(topics, [cluster])
    await ids.look()
    cluster.brokers = [{"ours": NEW}]
    await ids.look()
    assert topics.has_id(OLD)
    assert topics.has_id(NEW)


async def test_another_broker_is_asked_where_one_is_away() -> None:
    topics = ProtectedTopics(frozenset(["ours"]))
    ids = ProtectedTopicIds(topics, [Cluster(), Cluster(None, {"ours": OLD})])
    assert [await ids.look(), await ids.look()] == [False, False], "the first cluster has no broker yet"
    assert topics.has_id(OLD)


class Done(Exception):
    """Ends what never returns."""


class ThreeTimes(Cluster):
    """Knows the topic when it is asked for the second time; ends the test at the third."""

    asked = 0

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        self.asked += 1
        if self.asked == 3:
            raise Done
        return {"ours": NEW if self.asked == 2 else None}


async def test_it_looks_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_topic_ids, "LOOK_SECONDS", 0.0)
    topics = ProtectedTopics(frozenset(["ours"]))
    with pytest.raises(Done):
        await ProtectedTopicIds(topics, [ThreeTimes({})]).run()
    assert topics.has_id(NEW)
