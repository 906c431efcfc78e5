"""TopicNames: topics' names by their ids, for the versions that name topics by id alone (KIP-516)."""

from typing import Final

from mypy_extensions import mypyc_attr

from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item

NAMES_AT_MOST: Final = 200_000
"""If there are more, the cache is cleared: topics come and go, and nothing tells which ids are gone."""
ASKED_AT_MOST: Final = 500
"""The most ids whose names are requested by id until ask_again(), because clients may make ids up. Beyond
them, the names of all topics are requested.
"""
PART_OF_ONE: Final = 8
"""A client may have a further id requested if it has had fewer than an eighth of the ids that are left. So
one client gets 55 of the 500, and 20 clients leave some to the next.
"""


@mypyc_attr(allow_interpreted_subclasses=True)
class TopicNames:
    """The names of a cluster's topics, which its connections share. A topic keeps its name as long as its id.

    The shell's subclass overrides the methods that concern the cluster; without it, no name is known.
    """

    def __init__(self) -> None:
        self._known: Final[dict[bytes, str]] = {}
        self.wanted: set[bytes] = set()
        """Ids without a name that the shell has to ask for: see take_wanted()."""
        self.all_wanted = False
        """Whether the shell has to ask for the names of all topics: more ids are unknown than it asks for."""
        self._asked: Final[set[bytes]] = set()
        self._asked_by: Final[dict[tuple[str, str], int]] = {}
        """How many of them each client has wanted."""

    def known_name(self, topic_id: bytes) -> str:
        """The topic's name; empty while it is not known."""
        name = self._known.get(topic_id)
        if name is None:
            name = self.look_up(topic_id)
            if name:
                if len(self._known) >= NAMES_AT_MOST:
                    self._known.clear()
                self._known[topic_id] = name
        return name

    def asked(self, topic_id: bytes) -> bool:
        """Whether the id has become wanted since the last ask_again()."""
        return topic_id in self._asked

    def want(self, topic_id: bytes, client: tuple[str, str]) -> None:
        """Have the name of an id requested for a client, or those of all topics if too many ids are wanted by
        all clients, or by this one.
        """
        of_client = self._asked_by.get(client, 0)
        if of_client * PART_OF_ONE < ASKED_AT_MOST - len(self._asked):
            self._asked_by[client] = of_client + 1
            self._asked.add(topic_id)
            self.wanted.add(topic_id)
        else:
            self.all_wanted = True

    @property
    def any_wanted(self) -> bool:
        """Whether the shell has to ask for anything."""
        return self.all_wanted or len(self.wanted) > 0

    def take_wanted(self) -> set[bytes]:
        """Return the ids that have become wanted since the last call; all_wanted is over, too."""
        taken = self.wanted
        self.wanted = set()
        self.all_wanted = False
        return taken

    def ask_again(self) -> None:
        """Let ids become wanted again that have been asked for and still have no name."""
        self._asked.clear()
        self._asked_by.clear()

    def fill_known(self, items: list[Item]) -> None:
        """Give items the names of their topics that are known; no others become wanted."""
        for item in items:
            if not item.topic and item.topic_id != NO_ID:
                item.topic = self.known_name(item.topic_id)

    def awaits(self, topic_id: bytes) -> bool:
        """Whether the topic's name is wanted or has been requested, and a response is expected."""
        return False

    @property
    def asks(self) -> bool:
        """Whether the shell may ask the cluster for names."""
        return False

    @property
    def requests(self) -> int:
        """How many requests for names have been sent to the cluster."""
        return 0

    @property
    def responses(self) -> int:
        """The number of the last of these requests to which the cluster has responded."""
        return 0

    def hides(self, topic_id: bytes) -> bool:
        """Whether the cluster has the topic, and does not let the proxy know its name."""
        return False

    def look_up(self, topic_id: bytes) -> str:
        """Return a topic's name from the cluster's metadata; empty if it is not known."""
        return ""
