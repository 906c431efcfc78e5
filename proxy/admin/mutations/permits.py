"""What each topic of a request costs, before the broker has said what became of it, and after.

    CreateTopics        the partitions asked for, or the broker's num.partitions
    CreatePartitions    the new number of partitions less the one that there is
    DeleteTopics        the topic's partitions

Brokers look at a topic in this order: is it there once in the request, is it valid, is it there in the
cluster, does the quota allow it. So what fails at one of the first costs nothing.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.admin.messages.topic_apis import CreatePartitions, CreateTopics
from proxy.admin.messages.topics import NO_COUNT, Fields, Request, Topic, TopicKey, Yielder
from proxy.errors import UpstreamUnavailable
from proxy.upstream.partition_counts import PartitionCounts
from proxy.upstream.partitions import Partitions, Remembered, to_delete, to_grow
from proxy.wire.views import NO_ID

log = logging.getLogger(__name__)
MOST_PARTITIONS: Final = 10_000
"""Controllers reject to create more at once (KRaft). So that nobody who asks for more, and is gone before
the rejection, leaves a debt that lasts for years."""
LOG_EVERY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Permits:
    """What a topic costs."""

    before: int = 0
    """Charged before the broker is asked; 0 where nobody knows the topic, or the broker will reject it."""
    after: int = 0
    """What it has cost if the broker did it."""
    topic_id: bytes = NO_ID
    """The topic's, where the broker has told it."""


NOTHING: Final = Permits()


class PermitCosts:
    """Of topics of one cluster."""

    def __init__(self, time: Callable[[], float]) -> None:
        self.remembered: Final = Remembered()
        self._time: Final = time
        self._logged_at = float("-inf")

    async def of(
        self, request: Request, counts: PartitionCounts, node_id: int, yielder: Yielder
    ) -> dict[TopicKey, Permits]:
        """By topic, for a request to this broker, of which `counts` asks.

        A topic that is there twice costs nothing: brokers reject it.
        """
        times = Counter(topic.key for topic in request.topics)
        once = [topic for topic in request.topics if times[topic.key] == 1]
        if isinstance(request.api, CreateTopics):
            default = 0
            if any(topic.fields.partitions == NO_COUNT for topic in once):
                default = await counts.default(node_id, self._time())
            return await _creations(once, default, yielder)
        keys = [topic.key for topic in once if topic.key != NO_ID]
        found = await self._found(counts, node_id, keys)
        costs: dict[TopicKey, Permits] = {}
        for topic in once:
            costs[topic.key] = self._change(request, topic, found.get(topic.key))
            await yielder.step()
        return costs

    async def _found(
        self, counts: PartitionCounts, node_id: int, keys: list[TopicKey]
    ) -> dict[TopicKey, Partitions]:
        try:
            return await counts.topics(node_id, keys)
        except UpstreamUnavailable as error:
            now = self._time()
            if now - self._logged_at >= LOG_EVERY_SECONDS:
                self._logged_at = now
                log.warning("topics pass the controller mutation quota uncounted: %s", error)
            return {}

    def _change(self, request: Request, topic: Topic, found: Partitions | None) -> Permits:
        """Of growing or deleting a topic."""
        fields = topic.fields
        grows = isinstance(request.api, CreatePartitions)
        topic_id = NO_ID if found is None else found.topic_id
        if (fields.name is None) == (fields.topic_id == NO_ID) and not grows:
            return NOTHING  # Brokers reject it: a topic goes by its name or by its id.
        known = (found, self._recall(topic))
        if not grows:
            partitions = to_delete(known)
            return _cost(partitions, topic_id) if partitions else Permits(after=1)
        current = to_grow(known)
        if current is None:
            return Permits(after=max(fields.partitions - 1, 0))
        return _cost(fields.partitions - current, topic_id)

    def _recall(self, topic: Topic) -> Partitions | None:
        fields = topic.fields
        name = self.remembered.name(fields.topic_id) if fields.name is None else fields.name
        return None if name is None else self.remembered.recall(name, self._time())

    def note(self, request: Request, asked: Fields, done: Fields, cost: Permits) -> None:
        """The broker did what was asked for: remember it, since others may hear of it later."""
        now = self._time()
        name = done.name or asked.name or self.remembered.name(asked.topic_id)
        if request.validate_only or name is None:
            return
        if isinstance(request.api, CreateTopics):
            count = next((n for n in (done.partitions, asked.partitions, cost.after) if n > 0), 0)
            self.remembered.note(name, Partitions(count, done.topic_id), now)
        elif isinstance(request.api, CreatePartitions):
            before = self.remembered.recall(name, now)
            topic_id = cost.topic_id if before is None or cost.topic_id != NO_ID else before.topic_id
            self.remembered.note(name, Partitions(asked.partitions, topic_id), now)
        else:
            self.remembered.forget(name)


async def _creations(topics: list[Topic], default: int, yielder: Yielder) -> dict[TopicKey, Permits]:
    costs: dict[TopicKey, Permits] = {}
    for topic in topics:
        asked = topic.fields.partitions
        costs[topic.key] = _cost(default if asked == NO_COUNT else asked)
        await yielder.step()
    return costs


def _cost(partitions: int, topic_id: bytes = NO_ID) -> Permits:
    partitions = max(partitions, 0)
    return Permits(min(partitions, MOST_PARTITIONS), partitions, topic_id)
