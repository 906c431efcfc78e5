"""IdBudget: how many unknown topic ids one connection may have requested from the cluster by id.

All connections share a bounded number of such requests (TopicNames), and clients may make ids up. Without a
bound for each connection, one would leave none to the others, which then learn only the names of topics that
the proxy may describe.
"""

from typing import Final, final

from proxy.wire.topic_names import TopicNames

IDS_AT_MOST: Final = 10
"""Ids that a connection may have requested in BUDGET_SECONDS. For further ones, the names of all topics are
requested.
"""
BUDGET_SECONDS: Final = 1.0


@final
class IdBudget:
    """Of one connection."""

    __slots__ = ("_left", "_names", "_until")

    def __init__(self, names: TopicNames) -> None:
        self._names: Final = names
        self._left = IDS_AT_MOST
        self._until = 0.0

    def start(self, now: float) -> None:
        """Begin to read a message, or to look again for the names of one that waits."""
        if now >= self._until:
            self._until = now + BUDGET_SECONDS
            self._left = IDS_AT_MOST

    def name(self, topic_id: bytes) -> str:
        """The topic's name; empty while it is not known. Then it is requested, as far as the budget lasts."""
        names = self._names
        name = names.known_name(topic_id)
        if name or names.asked(topic_id):
            return name
        if self._left > 0:
            self._left -= 1
            names.want(topic_id)
        else:
            names.all_wanted = True
        return ""
