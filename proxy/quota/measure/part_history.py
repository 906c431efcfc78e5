"""PartHistory: the parts of a limit that a process has had lately, and their mean over a time."""

from typing import Final, final

STEP_SECONDS: Final = 0.25
"""Changes within this time of the last one that is remembered separately become one. A part may change more
than ten times a second, and its mean is needed over some ten seconds.
"""


@final
class PartHistory:
    """The mean is exact, however many changes there are, except that the changes of one step count as a
    constant part with the same mean.
    """

    __slots__ = ("_changes", "_first", "_part")

    def __init__(self, part: float) -> None:
        """Begin with a part that counts as the one of all time before."""
        self._first: Final = part
        self._part = part
        self._changes: Final[list[tuple[float, float]]] = []
        """The times of changes in ascending order, with the sum of part x seconds until then."""

    @property
    def part(self) -> float:
        """The present part."""
        return self._part

    def __len__(self) -> int:
        """How many changes it remembers."""
        return len(self._changes)

    def change(self, part: float, now: float, kept_seconds: float) -> None:
        """Have another part from `now` on. Means are needed over at most the last `kept_seconds`."""
        changes = self._changes
        total = 0.0
        if changes:
            now = max(now, changes[-1][0])
            total = self._total(now)
        if len(changes) > 1 and now - changes[-2][0] < STEP_SECONDS:
            changes.pop()
        changes.append((now, total))
        self._part = part
        while len(changes) > 2 and changes[1][0] < now - kept_seconds:
            del changes[0]

    def mean(self, seconds: float, now: float) -> float:
        """The mean of the parts during the last `seconds`, above 0.0."""
        changes = self._changes
        if not changes or now - changes[-1][0] >= seconds:
            return self._part
        return (self._total(now) - self._total(now - seconds)) / seconds

    def _total(self, at: float) -> float:
        """The sum of part x seconds until a time. There is a change."""
        changes = self._changes
        last, total = changes[-1]
        if at >= last:
            return total + self._part * (at - last)
        first, total = changes[0]
        if at <= first:
            return total - self._first * (first - at)
        low = len(changes) - 2
        while changes[low][0] > at:
            low -= 1
        (begin, total), (end, more) = changes[low], changes[low + 1]
        return total + (more - total) * (at - begin) / (end - begin)
