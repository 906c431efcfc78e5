"""Sums events in the order of time, without a shuffle.

A task reads the row groups of a part of time in the order of their first events, and hands over the events of
the periods that no later row group has. Only the events of the last periods wait meanwhile.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from pipeline.schema import IDENTITY
from pipeline.transforms.arrays.parcels import (
    Counted,
    Packing,
    chosen,
    joined,
    narrow,
    portions,
    trimmed,
    with_null_partitions,
)
from pipeline.transforms.arrays.rows import Rows, from_arrow
from pipeline.transforms.duplicates import ORDER, VALUES

_START: Final = "interval_start_ms"
_COLUMNS: Final = (*IDENTITY, ORDER, *VALUES)


class Sweep:
    """The events of a task that wait for others of their periods."""

    def __init__(self, packing: Packing, periods: range) -> None:
        self._packing: Final = packing
        self._periods: Final = periods
        """The numbers of the periods whose events the task sums up."""
        self._waiting: list[Any] = []
        self.counted: Final = Counted()

    def add(self, table: Any, starts: tuple[int, int], *, is_counted: bool) -> None:
        """Take a table with ORDER. `starts`: the lowest and the highest time at which an event may begin; if
        one begins at another time, raises ValueError. `is_counted`: whether this task counts the rows.
        """
        rows = from_arrow(table)
        found, counted = chosen(rows, self._packing)
        if not is_counted:
            counted[:2] = [None, None]
        self.counted.add([value] for value in counted)
        wanted = np.flatnonzero(found)
        if not len(wanted):
            return
        begin = rows[_START][wanted]
        if begin.min() < starts[0] or begin.max() > starts[1]:
            raise ValueError(f"the statistics of {_START} are wrong")
        period = begin // self._packing.period_ms
        is_mine = (period >= self._periods.start) & (period < self._periods.stop)
        mine = wanted if is_mine.all() else wanted[is_mine]
        if len(mine):
            numbers = with_null_partitions(rows)
            kept = {name: narrow(numbers[name][mine]) for name in _COLUMNS}
            self._waiting.append(pa.Table.from_batches([trimmed(kept, rows.texts)]))

    def count(self, rows: int, starts: tuple[int, int], length_ms: int) -> None:
        """Count rows that are events of the window, without a look at them."""
        self.counted.add(([rows], [0], [starts[0]], [starts[1] + length_ms]))

    def complete(self, before: int | None) -> Iterator[Rows]:
        """Yield the events of the periods before this one, or all, and forget them.

        They wait longer if most of what waits is not complete, so that each event is copied few times.
        """
        if not self._waiting:
            return
        whole, rest, complete = list[Any](), list[Any](), 0
        if before is None:
            whole, self._waiting = self._waiting, []
        else:
            for table in self._waiting:
                is_complete = table.column(_START).to_numpy() // self._packing.period_ms < before
                complete += int(np.count_nonzero(is_complete))
                for some, mask in ((whole, is_complete), (rest, ~is_complete)):
                    if mask.any():
                        some.append(table if mask.all() else table.filter(pa.array(mask)))
            if complete * 2 < sum(map(len, self._waiting)):
                return
            self._waiting = rest
        yield from portions(joined(whole))
