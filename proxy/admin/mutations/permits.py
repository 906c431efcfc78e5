"""PermitCosts: the permits that each topic of a request costs (KIP-599).

    CreateTopics        the requested partitions, or the broker's num.partitions
    CreatePartitions    the requested total less the topic's partitions
    DeleteTopics        the topic's partitions

Brokers check a topic in this order: that it is in the request once, that it is valid, that it exists (or
does not), and last the quota. So a topic that fails one of the first checks costs nothing.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.admin.messages.create_partitions import CreatePartitions
from proxy.admin.messages.create_topics import CreateTopics
from proxy.admin.messages.topics import NO_COUNT, Topic, TopicFields, TopicsRequest
from proxy.admin.yielder import Yielder
from proxy.errors import UpstreamUnavailable
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.partitions import Partitions, RecentMutations, TopicKey, to_delete, to_grow
from proxy.wire.cursor import NO_ID

log = logging.getLogger(__name__)
MOST_PARTITIONS: Final = 10_000
"""The most permits that a topic costs. Controllers reject larger requests (KRaft); a client that disconnects
before that rejection would otherwise leave a debt that lasts for years.
"""
LOG_EVERY_SECONDS: Final = 10.0
"""The least time between two warnings that partitions are not known."""


@dataclass(frozen=True, slots=True)
class Permits:
    """The cost of a topic, in permits: partitions that are created or deleted."""

    before: int = 0
    """Charged before the request is forwarded; 0 if the topic is not known, or the broker will reject it."""
    after: int = 0
    """Due if the broker has no error for the topic."""
    topic_id: bytes = NO_ID
    """NO_ID if it is not known."""


NO_PERMITS: Final = Permits()


class PermitCosts:
    """The costs of one cluster's topics."""

    def __init__(self, time: Callable[[], float]) -> None:
        self.recent: Final = RecentMutations()
        self._time: Final = time
        self._logged_at = float("-inf")

    async def of(
        self, request: TopicsRequest, counts: PartitionCounts, node_id: int, yielder: Yielder
    ) -> dict[TopicKey, Permits]:
        """Return the costs by topic, for a request to this broker; `counts` asks it for partitions.

        A topic that is in the request twice costs nothing: brokers reject it.
        """
        times: Counter[TopicKey] = Counter()
        async for some in yielder.slices(request.topics):
            times.update([topic.key for topic in some])
        once: list[Topic] = []
        async for some in yielder.slices(request.topics):
            once += [topic for topic in some if times[topic.key] == 1]
        if isinstance(request.api, CreateTopics):
            default = 0
            if any(topic.fields.partitions == NO_COUNT for topic in once):
                default = (await counts.default(node_id, self._time())).partitions
            return await _creations(once, default, yielder)
        keys = [topic.key for topic in once if topic.key != NO_ID]
        found = await self.found(counts, node_id, keys) or {}
        costs: dict[TopicKey, Permits] = {}
        for topic in once:
            costs[topic.key] = self._change(request, topic, found.get(topic.key))
            await yielder.step()
        return costs

    async def found(
        self, counts: PartitionCounts, node_id: int, keys: list[TopicKey]
    ) -> dict[TopicKey, Partitions] | None:
        """Return those of these topics that the broker has; None, with a line in the log, if it cannot be
        asked.
        """
        try:
            return await counts.topics(node_id, keys)
        except UpstreamUnavailable as error:
            now = self._time()
            if now - self._logged_at >= LOG_EVERY_SECONDS:
                self._logged_at = now
                log.warning("controller mutation quota not applied, partitions are not known: %s", error)
            return None

    def _change(self, request: TopicsRequest, topic: Topic, found: Partitions | None) -> Permits:
        """Return the cost of growing or deleting a topic."""
        fields = topic.fields
        grows = isinstance(request.api, CreatePartitions)
        topic_id = NO_ID if found is None else found.topic_id
        if (fields.name is None) == (fields.topic_id == NO_ID) and not grows:
            return NO_PERMITS  # Brokers reject a topic with both a name and an id, or neither.
        known = (found, self._recall(topic))
        if not grows:
            partitions = to_delete(known)
            return _cost(partitions, topic_id) if partitions else Permits(after=1)
        current = to_grow(known)
        if current is None:
            return Permits(after=max(fields.partitions - 1, 0))
        added = fields.partitions - current
        # Before the quota, the controller rejects an assignment of more or fewer partitions.
        return _cost(added if fields.assigned in (NO_COUNT, added) else 0, topic_id)

    def _recall(self, topic: Topic) -> Partitions | None:
        """Return the partitions of a topic that was recently changed through the proxy."""
        fields = topic.fields
        name = self.recent.name(fields.topic_id) if fields.name is None else fields.name
        return None if name is None else self.recent.recall(name, self._time())

    def note(self, request: TopicsRequest, requested: TopicFields, done: TopicFields, cost: Permits) -> None:
        """Remember what the broker did: its Metadata, and that of other brokers, may be behind."""
        now = self._time()
        name = done.name or requested.name or self.recent.name(requested.topic_id)
        if request.validate_only or name is None:
            return
        if isinstance(request.api, CreateTopics):
            count = next((n for n in (done.partitions, requested.partitions, cost.after) if n > 0), 0)
            self.recent.note(name, Partitions(count, done.topic_id), now)
        elif isinstance(request.api, CreatePartitions):
            before = self.recent.recall(name, now)
            topic_id = cost.topic_id if before is None or cost.topic_id != NO_ID else before.topic_id
            self.recent.note(name, Partitions(requested.partitions, topic_id), now)
        else:
            self.recent.forget(name)


async def _creations(topics: list[Topic], default: int, yielder: Yielder) -> dict[TopicKey, Permits]:
    costs: dict[TopicKey, Permits] = {}
    for topic in topics:
        partitions = topic.fields.partitions
        costs[topic.key] = _cost(default if partitions == NO_COUNT else partitions)
        await yielder.step()
    return costs


def _cost(partitions: int, topic_id: bytes = NO_ID) -> Permits:
    partitions = max(partitions, 0)
    return Permits(min(partitions, MOST_PARTITIONS), partitions, topic_id)
