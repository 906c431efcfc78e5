"""FreeSessions: the fetch sessions of one connection from which no quota omits a partition.

The relay forwards their requests unchanged, as long as none names a partition that a quota may omit.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.wire.errors import Malformed
from proxy.wire.fetch.request import NO_SESSION, FetchRequest, PartitionKey
from proxy.wire.fetch.rewrite import FetchRewrite
from proxy.wire.views import RequestView

MAX_SESSIONS: Final = 8
"""Sessions of one connection, each with up to MAX_PARTITIONS. A client has one. If a connection has more, it
must open the oldest ones again.
"""


class FreeSession(FetchRewrite):
    """The response that opens a session from which no quota omits a partition."""

    reads_partitions = False

    def __init__(self, sessions: "FreeSessions", request: FetchRequest) -> None:
        super().__init__(request.version)
        self._sessions: Final = sessions
        self._partitions: Final = {(entry.topic, entry.partition) for entry in request.entries}

    def opened(self) -> None:
        if self.error_code == 0 and self.session_id != NO_SESSION:
            self._sessions.open(self.session_id, self._partitions)


@final
class FreeSessions:
    """The sessions of one connection. Raises Malformed if one becomes too large."""

    def __init__(self, engine: QuotaEngine, topics: OmittablePartitions) -> None:
        self._engine: Final = engine
        self._topics: Final = topics
        self._sessions: Final[dict[int, set[PartitionKey]]] = {}
        """The partitions of each session, by session id."""
        self._generation = engine.generation
        """The limits under which no quota omits a partition of them."""

    def open(self, session_id: int, partitions: set[PartitionKey]) -> None:
        """Add a session that the broker has opened, from which no quota omits a partition."""
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[session_id] = partitions

    def close(self, session_id: int) -> None:
        """Remove a session that has ended, if it is one of these."""
        self._sessions.pop(session_id, None)

    def covers(self, request: FetchRequest, view: RequestView, who: Identity, at_most: int) -> bool:
        """Whether a request belongs to such a session, and adds no partition that a quota may omit."""
        generation = self._engine.generation
        if self._generation != generation:
            self._generation = generation
            for session_id, partitions in list(self._sessions.items()):
                keys = list(partitions)
                if any(self._topics.find(key, request.version, view.replica_id, who) != "" for key in keys):
                    del self._sessions[session_id]
        known = self._sessions.get(request.session_id)
        if known is None or self._topics.concern(request, view, who):
            return False
        known.update([(entry.topic, entry.partition) for entry in request.entries])
        if len(known) > at_most:
            raise Malformed(f"a fetch session has more than {at_most} partitions")
        return True
