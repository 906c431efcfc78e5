"""ClusterTopicNames: topic names by topic id, requested as soon as a client sends an unknown id."""

from collections.abc import Callable
from typing import Any, Final

from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.topic_names import TopicNames

ASK_AGAIN_SECONDS: Final = 1.0
"""An id that the cluster does not have is requested at most this often: clients may invent ids."""

CallLater = Callable[[float, Callable[[], None]], Any]


class ClusterTopicNames(TopicNames):
    """The topic names of a cluster."""

    def __init__(self, cluster: ClusterRefresh, call_later: CallLater) -> None:
        """`call_later` is the event loop's."""
        super().__init__()
        self._cluster: Final = cluster
        self._call_later: Final = call_later
        self._timer = False

    def look_up(self, topic_id: bytes) -> str:
        return self._cluster.view.topic_name(topic_id)

    def awaits(self, topic_id: bytes) -> bool:
        cluster = self._cluster
        return cluster.awaits_name(topic_id) or (topic_id in self.wanted and cluster.responds)

    def ask(self) -> None:
        """Request the names that are wanted."""
        self._cluster.want_names(self.take_wanted())
        if not self._timer:
            self._timer = True
            self._call_later(ASK_AGAIN_SECONDS, self._ask_again)

    def _ask_again(self) -> None:
        self._timer = False
        self.ask_again()
