"""Sums events in the order of time, without a shuffle.

A task reads the row groups of a part of time in the order of their first events, and hands over the events of
the periods that no later row group has. Only the events of the last periods wait meanwhile.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from pipeline.schema import IDENTITY
from pipeline.transforms.arrays.parcels import (
    Counted,
    Packing,
    are_within,
    chosen,
    portions,
    span,
    trimmed,
    with_event_hour,
    with_null_partitions,
)
from pipeline.transforms.arrays.rows import Rows, from_arrow, narrow, together
from pipeline.transforms.duplicates import ORDER, VALUES

_START: Final = "interval_start_ms"
_FEW_TEXTS: Final = 4
"""How many times as many rows as texts there are if the texts may wait that no row has."""
_COLUMNS: Final = (*IDENTITY, ORDER, *VALUES)


class Sweep:
    """The events of a task that wait for others of their periods."""

    def __init__(self, packing: Packing, periods: range) -> None:
        self._packing: Final = packing
        self._periods: Final = periods
        """The numbers of the periods whose events the task sums up."""
        self._waiting: list[Rows] = []
        self.counted: Final = Counted()

    def add(self, table: Any, starts: tuple[int, int], *, is_counted: bool) -> None:
        """Take a table with ORDER. `starts`: the lowest and the highest time at which an event may begin; if
        one begins at another time, raises ValueError. `is_counted`: whether this task counts the rows.
        """
        rows = from_arrow(table)
        found, counted = chosen(rows, self._packing)
        self._count(counted, is_counted=is_counted)
        if found.any():
            self._keep(Rows(with_null_partitions(rows), rows.texts).where(found), starts)

    def add_checked(self, rows: Rows, starts: tuple[int, int], *, is_counted: bool) -> None:
        """Take rows of checked() with ORDER, as add() does."""
        if not len(rows):
            return
        some = rows.where(are_within(rows, self._packing.window))
        self._count([len(rows), 0, *span(some)], is_counted=is_counted)
        if self._packing.are_wanted is not None:
            some = some.where(self._packing.are_wanted(some))
        if len(some):
            self._keep(some, starts)

    def count(self, rows: int, starts: tuple[int, int], length_ms: int) -> None:
        """Count rows that are events of the window, without a look at them."""
        self.counted.add(([rows], [0], [starts[0]], [starts[1] + length_ms]))

    def _count(self, counted: Sequence[int | None], *, is_counted: bool) -> None:
        self.counted.add([value] for value in (counted if is_counted else [None, None, *counted[2:]]))

    def _keep(self, rows: Rows, starts: tuple[int, int]) -> None:
        """Let rows wait, at least one, if they are of the task's periods."""
        begin = rows[_START]
        low, high = int(begin.min()), int(begin.max())
        if low < starts[0] or high > starts[1]:
            raise ValueError(f"the statistics of {_START} are wrong")
        first, end = (
            period * self._packing.period_ms for period in (self._periods.start, self._periods.stop)
        )
        mine = rows if low >= first and high < end else rows.where((begin >= first) & (begin < end)).copy()
        if not len(mine):
            return
        kept = Rows({name: narrow(mine.numbers[name]) for name in _COLUMNS}, mine.texts)
        texts = max(map(len, kept.texts.values()))
        self._waiting.append(trimmed(kept) if texts * _FEW_TEXTS > len(kept) else kept)

    def complete(self, before: int | None) -> Iterator[Rows]:
        """Yield the events of the periods before this one, or all, and forget them.

        They wait longer if most of what waits is not complete, so that each event is copied few times.
        """
        if not self._waiting:
            return
        if before is None:
            whole, self._waiting = self._waiting, []
        else:
            end = before * self._packing.period_ms
            are_complete = [rows[_START] < end for rows in self._waiting]
            if sum(map(np.count_nonzero, are_complete)) * 2 < sum(map(len, self._waiting)):
                return
            each = list(zip(self._waiting, are_complete, strict=True))
            whole = [rows.where(mask) for rows, mask in each if mask.any()]
            self._waiting = [rows.where(~mask).copy() for rows, mask in each if not mask.all()]
        yield from portions(with_event_hour(together(whole)))
