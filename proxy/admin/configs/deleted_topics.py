"""DeletedTopics: removes the quota configs of deleted topics, however these were deleted.

The proxy asks brokers for the topics by name: UNKNOWN_TOPIC_OR_PARTITION says that a topic does not exist,
while a list of all topics lacks those that the proxy may not describe. A broker may be behind. So configs are
removed only if a broker has said for some seconds that the topic does not exist, or has another id, and then
every broker of every cluster says the same. If a broker cannot be asked, all configs are kept. They are also
kept while quotas.deleted_topic_configs is `retain`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from proxy.errors import UpstreamUnavailable
from proxy.quota.identity import Identity
from proxy.store.quota_store import QuotaStore, StoreOff, StoreUnavailable

log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 3.0
"""Half of SURE_SECONDS, so that a topic is looked up twice before every broker is asked."""
SURE_SECONDS: Final = 6.0
"""For how long a topic must be missing before every broker is asked; brokers are behind for less in general.
"""
TOPICS_AT_A_TIME: Final = 500
"""Topics in one look, to bound the request. If more have configs, they take turns."""
PROXY: Final = Identity("quota-proxy", "deleted-topics", "")
"""The author of the removal in the audit log."""


class Brokers(Protocol):
    """The brokers of a cluster."""

    def nodes(self) -> Sequence[int]:
        """Return the node ids of the known brokers."""

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        """Return each topic's id, None for one that does not exist; omit topics with other errors.

        Raises UpstreamUnavailable.
        """


class DeletedTopics:
    """Removes configs of deleted topics from the store."""

    def __init__(self, store: QuotaStore, clusters: Sequence[Brokers], time: Callable[[], float]) -> None:
        self._store: Final = store
        self._clusters: Final = tuple(clusters)
        self._time: Final = time
        self._suspects: Final[dict[str, float]] = {}
        """Topics that seem to be deleted, and since when."""
        self._turn = 0
        self._logged = ""
        """Why configs could not be removed, as the log says; empty if they could."""

    async def run(self) -> None:
        """Look for deleted topics, every LOOK_SECONDS, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Ask for the topics whose turn it is; remove the configs of those that are certainly deleted."""
        if self._store.retains_deleted:
            self._suspects.clear()
            return
        self._forget_suspects()
        names = self._due()
        if not names or not self._clusters:
            return
        self._turn += 1
        found = await self._ask(names, everyone=False)
        now = self._time()
        sure: list[str] = []
        for name in names:
            if not self._stale(self._store.topic_ids(name), found.get(name)):
                self._suspects.pop(name, None)
            elif now - self._suspects.setdefault(name, now) >= SURE_SECONDS:
                sure.append(name)
        if sure:
            await self._remove(sure)

    def _forget_suspects(self) -> None:
        """Drop the suspects without configs: a later topic of the name is not under suspicion."""
        for name in self._suspects.keys() - self._store.topics_set():
            del self._suspects[name]

    def _due(self) -> list[str]:
        """Return the suspects, and other topics up to the limit."""
        names = sorted(self._store.topics_set())
        if len(names) <= TOPICS_AT_A_TIME:
            return names
        start = self._turn * TOPICS_AT_A_TIME % len(names)
        suspects = list(self._suspects)[:TOPICS_AT_A_TIME]
        others = (names + names)[start : start + TOPICS_AT_A_TIME - len(suspects)]
        return list(dict.fromkeys([*suspects, *others]))

    async def _ask(self, names: Sequence[str], everyone: bool) -> dict[str, frozenset[str]]:
        """Return the topic ids of each name in all clusters; omit names that not all responses are clear
        about.
        """
        found: dict[str, set[str]] = {name: set() for name in names}
        for cluster in self._clusters:
            nodes = list(cluster.nodes())
            if not nodes:
                return {}
            for node_id in nodes if everyone else [nodes[self._turn % len(nodes)]]:
                try:
                    ids = await cluster.topic_ids(node_id, list(found))
                except UpstreamUnavailable:
                    return {}
                for name in list(found):
                    if name not in ids:
                        del found[name]
                        continue
                    topic_id = ids[name]
                    if topic_id is not None:
                        found[name].add(topic_id.hex())
        return {name: frozenset(ids) for name, ids in found.items()}

    @staticmethod
    def _stale(set_for: Mapping[str, str], found: frozenset[str] | None) -> dict[str, str]:
        """Return the configs that were set for a deleted topic, with its id.

        `found` are the ids that topics of this name have; None if that is not clear.
        """
        if found is None:
            return {}
        return {
            key: topic_id
            for key, topic_id in set_for.items()
            if not found or (topic_id and topic_id not in found)
        }

    async def _remove(self, names: Sequence[str]) -> None:
        """Remove the configs of those of these topics that every broker reports as deleted."""
        # From before the brokers are asked: configs that are set later are for a topic that they do not know.
        set_for = {name: self._store.topic_ids(name) for name in names}
        found = await self._ask(names, everyone=True)
        for name in names:
            stale = self._stale(set_for[name], found.get(name))
            if not stale:
                continue
            try:
                removed = await self._store.forget_topic_configs(name, stale, PROXY)
            except (StoreUnavailable, StoreOff) as error:
                if str(error) != self._logged:
                    log.warning("cannot remove the configs of deleted topic %s yet: %s", name, error)
                self._logged = str(error)
                return
            self._logged = ""
            self._suspects.pop(name, None)
            if removed:
                log.info("topic %s was deleted: removed its configs %s", name, ", ".join(removed))
