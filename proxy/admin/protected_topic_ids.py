"""ProtectedTopicIds: learns the ids of the protected topics, by which newer clients name topics (KIP-516)."""

import asyncio
from collections.abc import Sequence
from typing import Final

from proxy.admin.configs.deleted_topics import Brokers
from proxy.errors import UpstreamUnavailable
from proxy.wire.protected_topics import ProtectedTopics

LOOK_SECONDS: Final = 2.0
"""How long the id of a protected topic that has just been created may be unknown."""
FIRST_LOOK_SECONDS: Final = 0.1
"""The same until every cluster has responded once."""


class ProtectedTopicIds:
    """Asks one broker of each cluster after the other."""

    def __init__(self, topics: ProtectedTopics, clusters: Sequence[Brokers]) -> None:
        self._topics: Final = topics
        self._clusters: Final = tuple(clusters)
        self._turn = 0

    async def run(self) -> None:
        """Look for the ids, every LOOK_SECONDS, until cancelled."""
        all_responded = not self._clusters
        while True:
            all_responded = await self.look() or all_responded
            await asyncio.sleep(LOOK_SECONDS if all_responded else FIRST_LOOK_SECONDS)

    async def look(self) -> bool:
        """Learn the current ids; return whether every cluster has responded."""
        self._turn += 1
        responded = 0
        for cluster in self._clusters:
            nodes = list(cluster.nodes())
            if not nodes:
                continue
            try:
                ids = await cluster.topic_ids(nodes[self._turn % len(nodes)], sorted(self._topics.names))
            except UpstreamUnavailable:
                continue
            responded += 1
            self._topics.learn(frozenset([topic_id for topic_id in ids.values() if topic_id is not None]))
        return responded == len(self._clusters)
