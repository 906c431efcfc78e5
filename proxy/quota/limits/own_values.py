"""OwnValues: the numbers that topics or brokers have set for one config, with their sum and their order."""

from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Final, final


@final
class OwnValues:
    """The time that a change takes hardly depends on the number of values."""

    __slots__ = ("_changed", "_ordered", "_sign", "_texts", "total")

    def __init__(self, texts: Mapping[str, str], largest: bool) -> None:
        """`texts`: the numbers, by name. `largest`: whether first() begins with the largest, or the least."""
        self._texts: Final = texts
        self._changed: Final[dict[str, int | None]] = {}
        """The values that differ from the texts; None: removed."""
        self._sign: Final = -1 if largest else 1
        self._ordered: Final = sorted([(self._sign * int(text), name) for name, text in texts.items()])
        """A list, not a heap: what is undone leaves nothing that a later call has to skip."""
        self.total = self._sign * sum([value for value, _ in self._ordered])

    @property
    def count(self) -> int:
        """The number of values."""
        return len(self._ordered)

    def get(self, name: str) -> int | None:
        """The value of a name, or None."""
        if name in self._changed:
            return self._changed[name]
        text = self._texts.get(name)
        return None if text is None else int(text)

    def put(self, name: str, value: int | None) -> None:
        """Set the value of a name; None removes it."""
        before = self.get(name)
        self._changed[name] = value
        if before is not None:
            self.total -= before
            del self._ordered[bisect_left(self._ordered, (self._sign * before, name))]
        if value is not None:
            self.total += value
            insort(self._ordered, (self._sign * value, name))

    def first(self, number: int) -> list[tuple[int, str]]:
        """The first values with their names, in order, and by name where they are equal."""
        return [(self._sign * value, name) for value, name in self._ordered[:number]]
