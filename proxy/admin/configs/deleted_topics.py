"""DeletedTopics: a topic's configs go with it, whoever has deleted it.

Brokers are asked by name about the topics that have configs set with tools: an answer that a topic does not
exist is one, where a list without it might be short of what the proxy may not see. Each broker can be behind.
So nothing is forgotten unless a broker has said for some seconds that the topic is gone, or is another one of
its name, and then every broker of every cluster says so too. Where one cannot be asked, all is kept.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from proxy.errors import UpstreamUnavailable
from proxy.quota.identity import Identity
from proxy.quota.limits.resources import TOPIC, ConfigResource
from proxy.store.quota_store import QuotaStore, StoreOff, StoreUnavailable

log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 3.0
SURE_SECONDS: Final = 6.0
"""So long a topic has to be gone before every broker is asked."""
TOPICS_AT_A_TIME: Final = 500
"""Asked about in one look; where more have configs, they take turns."""
PROXY: Final = Identity("quota-proxy", "deleted-topics", "")
"""Who makes the change, in the audit trail."""


class Brokers(Protocol):
    """The brokers of a cluster."""

    def nodes(self) -> Sequence[int]:
        """Those that are known, by node id."""

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        """Each topic's id, None where the broker says that there is none; without those of which it says
        neither. Raises UpstreamUnavailable.
        """


class DeletedTopics:
    """Has the store forget configs of topics that are gone."""

    def __init__(self, store: QuotaStore, clusters: Sequence[Brokers], time: Callable[[], float]) -> None:
        self._store: Final = store
        self._clusters: Final = tuple(clusters)
        self._time: Final = time
        self._suspects: Final[dict[str, float]] = {}
        """Topics that seem to be gone, and since when."""
        self._turn = 0

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Ask about the topics whose turn it is, and forget what is surely gone."""
        names = self._due()
        if not names or not self._clusters:
            return
        self._turn += 1
        found = await self._ask(names, everyone=False)
        now = self._time()
        sure: list[str] = []
        for name in names:
            if not self._stale(name, found):
                self._suspects.pop(name, None)
            elif now - self._suspects.setdefault(name, now) >= SURE_SECONDS:
                sure.append(name)
        if sure:
            await self._forget(sure)

    def _due(self) -> list[str]:
        """Suspects, and as many others as there is room for."""
        names = sorted(self._store.topics_set())
        if len(names) <= TOPICS_AT_A_TIME:
            return names
        start = self._turn * TOPICS_AT_A_TIME % len(names)
        suspects = list(self._suspects)[:TOPICS_AT_A_TIME]
        others = (names + names)[start : start + TOPICS_AT_A_TIME - len(suspects)]
        return list(dict.fromkeys([*suspects, *others]))

    async def _ask(self, names: Sequence[str], everyone: bool) -> dict[str, frozenset[str]]:
        """The ids of the topics of each name, in all clusters; without those of which it is not sure."""
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

    def _stale(self, name: str, found: Mapping[str, frozenset[str]]) -> list[str]:
        """The configs of this name that were set for a topic which is gone."""
        ids = found.get(name)
        if ids is None:
            return []
        set_for = self._store.topic_ids(name)
        return [key for key, topic_id in set_for.items() if not ids or (topic_id and topic_id not in ids)]

    async def _forget(self, names: Sequence[str]) -> None:
        found = await self._ask(names, everyone=True)
        for name in names:
            stale = self._stale(name, found)
            if not stale:
                continue
            try:
                await self._store.forget_configs(ConfigResource(TOPIC, name), stale, PROXY)
            except (StoreUnavailable, StoreOff) as error:
                log.warning("configs of topic %s, which is gone, cannot be removed yet: %s", name, error)
                return
            self._suspects.pop(name, None)
            log.info("topic %s is gone, and with it its configs %s", name, ", ".join(sorted(stale)))
