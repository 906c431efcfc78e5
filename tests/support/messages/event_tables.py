"""Usage events as Arrow tables, and random ones with duplicates and contradictions."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from pipeline.schema import EVENT, IDENTITY
from tests.support.messages.usage_events import HOUR_MS, make_event

_KINDS = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string()}


def as_table(events: Iterable[Mapping[str, Any]]) -> Any:
    """Return events as an Arrow table with the columns of EVENT."""
    schema = pa.schema([(field.name, _KINDS[field.dataType.simpleString()]) for field in EVENT.fields])
    return pa.Table.from_pylist(list(events), schema)


def random_events(source: Random, number: int) -> list[dict[str, Any]]:
    """Return events of few tenants and three hours. Some are delivered twice, and some of these have other
    values the second time.
    """
    found = [_random_event(source) for _ in range(number)]
    again = [dict(event) for event in source.sample(found, number // 3)]
    for event in again[: number // 6]:
        event[source.choice(["bytes_in", "requests", "throttle_ms", "interval_ms"])] += 1
    return [*found, *again]


def _random_event(source: Random) -> dict[str, Any]:
    is_bound = source.random() < 0.3
    topic = source.choice([None, None, "", "orders", "ü", "x" * 300])
    return make_event(
        cluster=source.choice(["main", "other"]),
        proxy=source.choice(["p1", "p2"]),
        broker=source.randrange(-1, 2),
        listener=source.choice(["a", "b"]),
        at=10_000 * source.randrange(3 * HOUR_MS // 10_000),
        interval_ms=source.choice([10_000, 9_999, 1]),
        user=source.choice(["alice", "bob", "ü\n"]),
        client_id=source.choice(["", "c"]),
        api=source.choice(["Produce", "Fetch"]),
        topic=topic,
        partition=source.choice([None, 0, 1, 77]) if topic else None,
        requests=source.randrange(1000),
        bytes_in=source.randrange(10 ** source.randrange(1, 15)),
        bytes_out=source.randrange(10**6),
        throttled_requests=source.randrange(3) if is_bound else 0,
        throttle_ms=source.randrange(700) if is_bound else 0,
        quota=source.choice([None, "producer_byte_rate"]) if is_bound else None,
    )


def first_of(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the first event of each identity."""
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for event in events:
        found.setdefault(tuple(event[name] for name in IDENTITY), event)
    return list(found.values())
