"""TopicNames: topics' names by their ids, for the versions that name topics by id alone (KIP-516)."""

from typing import Final

from mypy_extensions import mypyc_attr

from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item

KNOWN_AT_MOST: Final = 200_000
"""Beyond this the cache starts anew: topics come and go, and nobody tells which ids are gone."""
ASKED_AT_MOST: Final = 500
"""Clients may make ids up: so many are asked for by id until ask_again(). Beyond these, all topics are."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TopicNames:
    """The connections of a cluster share one. A topic keeps its name for as long as it has its id."""

    def __init__(self) -> None:
        self._known: Final[dict[bytes, str]] = {}
        self.wanted: set[bytes] = set()
        """Ids without a name that the shell has to ask for: see take_wanted()."""
        self.all_wanted = False
        """Whether the shell has to ask for the names of all topics: more ids are unknown than it asks for."""
        self._asked: Final[set[bytes]] = set()

    def known_name(self, topic_id: bytes) -> str:
        """The topic's name; empty while it is not known."""
        name = self._known.get(topic_id)
        if name is None:
            name = self.look_up(topic_id)
            if name:
                if len(self._known) >= KNOWN_AT_MOST:
                    self._known.clear()
                self._known[topic_id] = name
        return name

    def name(self, topic_id: bytes) -> str:
        """The topic's name; empty while it is not known. Then its id is wanted."""
        name = self.known_name(topic_id)
        if not name and topic_id not in self._asked:
            self.want(topic_id)
        return name

    def asked(self, topic_id: bytes) -> bool:
        """Whether the id has become wanted since the last ask_again()."""
        return topic_id in self._asked

    def want(self, topic_id: bytes) -> None:
        """Have the name of an id requested, or those of all topics if too many ids are wanted."""
        if len(self._asked) < ASKED_AT_MOST:
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

    def fill(self, items: list[Item]) -> None:
        """Give the items of one message their topics' names, as far as these are known. Whether a message
        names topics by id depends on its version, so the first item tells whether the others have ids. It may
        have its name from an earlier call, in which other names were unknown.
        """
        if not items or (items[0].topic and items[0].topic_id == NO_ID):
            return
        for item in items:
            if not item.topic and item.topic_id != NO_ID:
                item.topic = self.name(item.topic_id)

    def fill_known(self, items: list[Item]) -> None:
        """The same with the names that are known; no others become wanted."""
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
