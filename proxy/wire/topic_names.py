"""TopicNames: topics' names by their ids, for the versions that name topics by id alone (KIP-516)."""

from typing import Final

from mypy_extensions import mypyc_attr

from proxy.wire.views import NO_ID, Item

KNOWN_AT_MOST: Final = 200_000
"""Past this many, what is known is looked up anew: topics come and go."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TopicNames:
    """The connections of a cluster share one. A topic keeps its name for as long as it has its id."""

    def __init__(self) -> None:
        self._known: Final[dict[bytes, str]] = {}

    def name(self, topic_id: bytes) -> str:
        """The topic's name; empty as long as nobody knows it."""
        name = self._known.get(topic_id)
        if name is None:
            name = self.look_up(topic_id)
            if name:
                if len(self._known) >= KNOWN_AT_MOST:
                    self._known.clear()
                self._known[topic_id] = name
        return name

    def fill(self, items: list[Item]) -> None:
        """Give the items of one message their topics' names, as far as these are known. Whether a message
        names topics by id depends on its version, so the first item tells whether there is anything to do.
        """
        if not items or items[0].topic:
            return
        for item in items:
            if not item.topic and item.topic_id != NO_ID:
                item.topic = self.name(item.topic_id)

    def awaits(self, topic_id: bytes) -> bool:
        """Whether the topic's name has been asked for, and the answer is on its way."""
        return False

    def look_up(self, topic_id: bytes) -> str:
        """Find a name that has not been asked for before; empty where it is not known, at least not yet."""
        return ""
