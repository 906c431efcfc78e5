"""IdBudget: how many unknown topic ids one connection may have requested from the cluster by id.

All connections share a bounded number of such requests (TopicNames), and clients may make ids up. Without a
bound for each client, one would leave none to the others, which then learn only the names of topics that the
proxy may describe. A client is a principal, or the address of those without one, with all its connections.
"""

from typing import Final, final

from proxy.quota.identity import Identity, client_key
from proxy.wire.cursor import NO_ID
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import Item

IDS_AT_MOST: Final = 10
"""Ids in requests that a connection may have requested in BUDGET_SECONDS. For further ones, the names of all
topics are requested.
"""
BUDGET_SECONDS: Final = 1.0
"""The time after which the budget begins anew."""


@final
class IdBudget:
    """The budget of one connection."""

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

    def name(self, topic_id: bytes, who: Identity) -> str:
        """The name of a topic in a request; empty while it is not known. Then it is requested, as far as the
        budget lasts.
        """
        names = self._names
        name = names.known_name(topic_id)
        if name or names.asked(topic_id):
            return name
        if self._left > 0:
            self._left -= 1
            names.want(topic_id, client_key(who))
        else:
            names.all_wanted = True
        return ""

    def awaits(self, topic_id: bytes) -> bool:
        """Whether the topic's name is wanted or has been requested, and a response is expected."""
        return self._names.awaits(topic_id)


def fill_names(names: TopicNames, items: list[Item], who: Identity) -> None:
    """Give the items of one message their topics' names, as far as these are known, and have the others
    requested, whatever the budget: those of a response may be many, and exist.

    Whether a message names topics by id depends on its version, so the first item tells whether the
    others have ids. It may have its name from an earlier call, in which other names were unknown.
    """
    if not items or (items[0].topic and items[0].topic_id == NO_ID):
        return
    last_id = NO_ID
    name = ""
    for item in items:
        if item.topic:
            continue
        topic_id = item.topic_id
        if topic_id is last_id:
            item.topic = name
        elif topic_id != NO_ID:
            last_id = topic_id
            name = item.topic = names.known_name(topic_id)
            if not name and not names.asked(topic_id):
                names.want(topic_id, client_key(who))
