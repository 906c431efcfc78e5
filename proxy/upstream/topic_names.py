"""ClusterTopicNames: topic names by topic id, requested as soon as a client sends an unknown id."""

from collections.abc import Callable
from typing import Any, Final

from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.topic_names import TopicNames

ASK_AGAIN_SECONDS: Final = 1.0
"""An id that the cluster does not have is requested at most this often, and so are the names of all topics:
clients may invent ids.
"""

CallLater = Callable[[float, Callable[[], None]], Any]


class ClusterTopicNames(TopicNames):
    """The topic names of a cluster."""

    def __init__(self, cluster: ClusterRefresh, call_later: CallLater) -> None:
        """`call_later` is that of the event loop: it calls a function after so many seconds."""
        super().__init__()
        self._cluster: Final = cluster
        self._call_later: Final = call_later
        self._timer = False
        self._all_lately = False
        """Whether the names of all topics have been requested since the last ask_again()."""

    @property
    def asks(self) -> bool:
        return self._cluster.may_ask

    @property
    def requests(self) -> int:
        return self._cluster.requests

    @property
    def responses(self) -> int:
        return self._cluster.responses

    def hides(self, topic_id: bytes) -> bool:
        return self._cluster.hides(topic_id)

    def look_up(self, topic_id: bytes) -> str:
        return self._cluster.view.topic_name(topic_id)

    def awaits(self, topic_id: bytes) -> bool:
        cluster = self._cluster
        wanted = self.all_wanted or topic_id in self.wanted
        return cluster.awaits_name(topic_id) or (wanted and cluster.responds)

    def ask(self) -> None:
        """Request the names that are wanted."""
        if not self.all_wanted:
            self._cluster.want_names(self.take_wanted())
        elif not self._all_lately:
            self._all_lately = True
            self.take_wanted()
            self._cluster.want_all_names()
        if not self._timer:
            self._timer = True
            self._call_later(ASK_AGAIN_SECONDS, self._ask_again)

    def _ask_again(self) -> None:
        self._timer = False
        self.ask_again()
        self._all_lately = False
        if self.any_wanted:
            self.ask()
