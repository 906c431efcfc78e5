"""The first event of each identity counts, in arrays."""

from random import Random

import numpy as np
import pytest

from pipeline.schema import IDENTITY
from pipeline.transforms.arrays.first_events import first_events
from pipeline.transforms.arrays.rows import MISSING, NULL, Rows, from_arrow, hashed
from pipeline.transforms.duplicates import DIGEST, EVENT_HOUR, HOURLY, ORDER, VALUES
from pipeline.transforms.runs import Ints
from tests.support.messages.event_tables import as_table, first_of, random_events
from tests.support.messages.usage_events import HOUR_MS, make_event


def checked(events: list[dict[str, object]], order: Ints) -> Rows:
    rows = from_arrow(as_table(events))
    partition = rows["partition"]
    added = {
        ORDER: order,
        DIGEST: hashed(rows, VALUES).view(np.int64),
        EVENT_HOUR: rows["interval_start_ms"] // HOUR_MS,
        "partition": np.where(partition == MISSING, NULL, partition),
    }
    return Rows({**rows.numbers, **added}, rows.texts)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "group", [HOURLY, (*HOURLY, "broker"), ("user", "client_id", *HOURLY[:2], *HOURLY[4:])]
)
def test_each_identity_counts_once(seed: int, group: tuple[str, ...]) -> None:
    source = Random(seed)
    events = random_events(source, 200)
    place = list(range(len(events)))
    source.shuffle(place)
    found = first_events(checked([events[at] for at in place], np.array(place) * 1000), group)
    assert sorted(str(events[place[row]]) for row in found.rows) == sorted(map(str, first_of(events)))
    assert (np.diff(found.groups) >= 0).all()
    assert (np.diff(found.moments) >= 0).all()
    first = {str([event[name] for name in IDENTITY]): event for event in first_of(events)}
    differ = [event for event in events if event != first[str([event[name] for name in IDENTITY])]]
    doubted = {str([event[name] for name in IDENTITY]) for event in differ}
    for row, is_contradicted in zip(found.rows, found.contradicted, strict=True):
        event = events[place[row]]
        assert (str([event[name] for name in IDENTITY]) in doubted) == is_contradicted
    assert doubted


def test_events_without_duplicates() -> None:
    rows = checked([make_event(at=10_000), make_event()], np.array([0, 1]))
    found = first_events(rows, HOURLY)
    assert found.rows.tolist() == [1, 0]
    assert not found.contradicted.any()
