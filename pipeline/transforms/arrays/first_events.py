"""Finds duplicates and contradictions in arrays, as deduplicate() does in Spark's plans."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.transforms.arrays.rows import Rows
from pipeline.transforms.duplicates import DIGEST, ORDER, VALUES
from pipeline.transforms.runs import Ints, combined

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
    groups = combined([rows[name] for name in group])
    others = [rows[name] for name in ("broker", "interval_start_ms") if name not in group]
    moments = combined([groups, *others])
    found = np.argsort(moments)
    moments = moments[found]
    beside = moments[1:] == moments[:-1]
    if not beside.any():
        return FirstEvents(found, groups[found], moments, np.zeros(len(found), np.bool_))
    several = np.append(beside, False) | np.append(False, beside)
    some = found[several]
    sender = combined([rows[name][some] for name in _SENDER])
    in_order = np.lexsort((rows[ORDER][some], sender, moments[several]))
    found[several] = some[in_order]
    senders = np.zeros(len(found), np.int64)
    senders[several] = sender[in_order]
    again = beside & (senders[1:] == senders[:-1])
    pairs = np.flatnonzero(again)
    differs = np.zeros(len(found), np.bool_)
    differs[pairs + 1] = _differ(rows, found[pairs], found[pairs + 1])
    counted = np.flatnonzero(np.append(True, ~again))
    contradicted = np.logical_or.reduceat(differs, counted)
    found = found[counted]
    return FirstEvents(found, groups[found], moments[counted], contradicted)


def _differ(rows: Rows, some: Ints, others: Ints) -> NDArray[np.bool_]:
    """Whether the values of each event differ from those of another: by DIGEST, or by the values."""
    compared = (DIGEST,) if DIGEST in rows.numbers else VALUES
    differ = [rows.numbers[name][some] != rows.numbers[name][others] for name in compared]
    found: NDArray[np.bool_] = np.logical_or.reduce(differ)
    return found
