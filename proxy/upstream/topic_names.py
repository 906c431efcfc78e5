"""ClusterTopicNames: topic names by topic id, requested as soon as a client sends an unknown id."""

from collections.abc import Callable
from typing import Final

from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.topic_names import TopicNames

ASK_AGAIN_SECONDS: Final = 1.0
"""An id that the cluster does not have is requested at most this often: clients may invent ids."""
ASKED_AT_MOST: Final = 1000
"""Ids requested in ASK_AGAIN_SECONDS: clients may invent as many as they like."""


class ClusterTopicNames(TopicNames):
    """The topic names of a cluster."""

    def __init__(self, cluster: ClusterRefresh, time: Callable[[], float]) -> None:
        super().__init__()
        self._cluster: Final = cluster
        self._time: Final = time
        self._asked_at = float("-inf")
        self._asked: Final[set[bytes]] = set()

    def look_up(self, topic_id: bytes) -> str:
        name = self._cluster.view.topic_name(topic_id)
        if not name:
            self._ask(topic_id)
        return name

    def awaits(self, topic_id: bytes) -> bool:
        return self._cluster.awaits_name(topic_id)

    def _ask(self, topic_id: bytes) -> None:
        now = self._time()
        if now - self._asked_at >= ASK_AGAIN_SECONDS:
            self._asked_at = now
            self._asked.clear()
        if topic_id not in self._asked and len(self._asked) < ASKED_AT_MOST:
            self._asked.add(topic_id)
            self._cluster.want_names([topic_id])
