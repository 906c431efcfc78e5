"""ProtectedTopics: the topics that clients may not change through the proxy."""

from typing import Final, final

from mypy_extensions import i64 as native

MESSAGE: Final = "This topic belongs to the quota proxy. Clients of the proxy cannot change it."
"""The message with TOPIC_AUTHORIZATION_FAILED for a client that tries to change one."""


@final
class ProtectedTopics:
    """The topics by name, and by the ids that the shell has learned. All connections share one object."""

    __slots__ = ("_ids", "_lengths", "_raw_names", "names")

    def __init__(self, names: frozenset[str]) -> None:
        self.names: Final = names
        self._raw_names: Final = frozenset([name.encode() for name in names])
        lengths = {len(name) for name in self._raw_names}
        self._lengths: Final = [length in lengths for length in range(max(lengths, default=0) + 1)]
        """By length: whether a name has it. Few do, so most names need not be copied and hashed."""
        self._ids: frozenset[bytes] = frozenset()

    def learn(self, topic_ids: frozenset[bytes]) -> None:
        """Add ids. They are never dropped: a cluster does not use an id twice."""
        self._ids |= topic_ids

    def has_length(self, length: native) -> bool:
        """Whether a name has this many bytes; `length` is not negative."""
        return length < len(self._lengths) and self._lengths[length]

    def has_raw_name(self, name: bytes) -> bool:
        """Whether a topic is protected, by its name as a message has it."""
        return name in self._raw_names

    def has_id(self, topic_id: bytes) -> bool:
        return len(self._ids) > 0 and topic_id in self._ids

    def has(self, name: str | None, topic_id: bytes) -> bool:
        """Whether a topic is protected, by its name or its id; a message may have either."""
        return name in self.names or topic_id in self._ids

    @property
    def spellings(self) -> list[bytes]:
        """The names and ids as messages have them."""
        return [*self._raw_names, *self._ids]
