"""TopicNameLookup: the names of a cluster's topics, for reports about topics that requests name by id."""

from collections.abc import Iterable
from typing import Protocol


class TopicNameLookup(Protocol):
    """A cluster's topic names as they are known now; a name that is missing can be requested."""

    def topic_name(self, topic_id: bytes) -> str:
        """Return the topic's name; an empty string if it is not known yet."""

    def want_names(self, topic_ids: Iterable[bytes]) -> None:
        """Request the names of these topics from the cluster; topic_name() has them some time later."""
