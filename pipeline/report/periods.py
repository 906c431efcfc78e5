"""Periods: divides the report's time into columns or rows. A long time has longer periods, and not more of
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
_LENGTHS: Final = (HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY)
_NAMES: Final = ("hour", "day", "7 days", "30 days", "365 days")


@dataclass(frozen=True, slots=True)
class Periods:
    """Periods of one length. Those of a day or more begin at midnight."""

    first: datetime
    length: timedelta
    count: int

    @classmethod
    def over(cls, first: datetime, last: datetime, most: int, shortest: timedelta = HOUR) -> Self:
        """The shortest periods that contain the hours from `first` to `last`, at most `most`; more if they
        would be longer than a year.
        """
        found = cls(first, HOUR, 1)
        for length in _LENGTHS[_LENGTHS.index(shortest) :]:
            begin = first if length < DAY else first.replace(hour=0)
            found = cls(begin, length, (last - begin) // length + 1)
            if found.count <= most:
                break
        return found

    @property
    def name(self) -> str:
        """The length, such as `hour`."""
        return _NAMES[_LENGTHS.index(self.length)]

    def place(self, time: datetime) -> int:
        """The number of the period that contains this time."""
        return (time - self.first) // self.length

    def begins(self) -> Sequence[datetime]:
        """The start of each period."""
        return [self.first + self.length * place for place in range(self.count)]

    def title(self, begin: datetime) -> str:
        """The label of the period that begins at this time."""
        if self.length < DAY:
            return f"{begin:%Y-%m-%d %H:%M}"
        last = begin + self.length - DAY
        return f"{begin:%Y-%m-%d}" + (f" to {last:%Y-%m-%d}" if last > begin else "")
