"""Finds duplicates and contradictions in arrays, as deduplicate() does in Spark's plans."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.transforms.arrays.rows import Rows
from pipeline.transforms.duplicates import DIGEST, ORDER, VALUES
from pipeline.transforms.runs import Ints, combined, compact, in_order, ranks

_BITS: Final = 62
"""Of numbers that are sorted together with their places."""
_SENDER: Final = ("proxy", "listener", "api")
"""The columns of IDENTITY that tell apart the events of one place, broker and interval."""


@dataclass(frozen=True, slots=True)
class FirstEvents:
    """The events that count. All arrays have their order: by group, then by moment."""

    rows: Ints
    groups: Ints
    """A number for each event, the same for the events of a group."""
    moments: Ints
    """The same for events of one group, broker and interval."""
    contradicted: NDArray[np.bool_]
    """Whether another event has the same identity and other values."""


def first_events(rows: Rows, group: Sequence[str]) -> FirstEvents:
    """Return the first event of each identity; `group` has at least the columns of HOURLY."""
    most = 1 << (_BITS - len(rows).bit_length())
    groups, count = compact([rows.numbers[name] for name in group], most)
    others = [rows.numbers[name] for name in ("broker", "interval_start_ms") if name not in group]
    at, size = compact(others, most)
    if count * size > most:
        groups, count = ranks(groups)
    if count * size > most:
        at, size = ranks(at)
    groups *= size
    groups += at
    found, moments = in_order(groups, count * size)
    beside = moments[1:] == moments[:-1]
    if not beside.any():
        return FirstEvents(found, moments // size, moments, np.zeros(len(found), np.bool_))
    several = np.append(beside, False) | np.append(False, beside)
    some = found[several]
    sender = combined([rows.numbers[name][some] for name in _SENDER])
    by_sender = np.lexsort((rows[ORDER][some], sender, moments[several]))
    found[several] = some[by_sender]
    senders = np.zeros(len(found), np.int64)
    senders[several] = sender[by_sender]
    again = beside & (senders[1:] == senders[:-1])
    pairs = np.flatnonzero(again)
    differ = pairs[_differ(rows, found[pairs], found[pairs + 1])]
    counted = np.flatnonzero(np.append(True, ~again))
    contradicted = np.zeros(len(counted), np.bool_)
    contradicted[np.searchsorted(counted, differ, side="right") - 1] = True
    moments = moments[counted]
    return FirstEvents(found[counted], moments // size, moments, contradicted)


def _differ(rows: Rows, some: Ints, others: Ints) -> NDArray[np.bool_]:
    """Whether the values of each event differ from those of another: by DIGEST, or by the values."""
    compared = (DIGEST,) if DIGEST in rows.numbers else VALUES
    differ = [rows.numbers[name][some] != rows.numbers[name][others] for name in compared]
    found: NDArray[np.bool_] = np.logical_or.reduce(differ)
    return found
