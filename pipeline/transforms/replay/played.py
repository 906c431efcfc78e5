"""Simulates connections that send their recorded bytes again, each request after the wait of the previous
one.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, final

import pandas as pd
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pipeline.transforms.replay.layout import Interval, connections_of
from pipeline.transforms.replay.turns import take_turns
from pipeline.transforms.totals import LARGEST
from proxy.quota.identity import Identity

STATE: Final = ("cluster", "proxy", "listener", "broker")
"""The key of a quota's state: each proxy keeps one for each broker."""
PLACE: Final = STATE[1:]
"""Where a client sends: at a broker of a proxy. A quota over the whole cluster has one state for all."""
SUMS: Final = ("bytes", "requests", "throttled_requests", "throttle_ms")
"""The sums of an interval from which requests are reconstructed."""
STEP_SECONDS: Final = 0.25
"""Requests that take at most this time at the limit are charged together."""
AFTER: Final = StructType(
    [
        StructField("cluster", StringType()),
        StructField("user", StringType()),
        StructField("client_id", StringType()),
        StructField("quota", StringType()),
        StructField("throttle_ms", LongType()),
        StructField("delayed_bytes", LongType()),
        StructField("late_ms", LongType()),
        StructField("rejected_bytes", LongType()),
    ]
)
NumberedStep = tuple[float, float, int]
"""A step, and the number of its interval."""
Row = tuple[str, str, str, int, int, int, int]
"""A row of AFTER without the cluster."""
_ON_TIME: Final = 1e-6
"""Seconds. A step that is sent by less than this after its time is not late."""


@final
class Connection:
    """One client connection: what it sends, and the earliest time of each step."""

    def __init__(self, who: Identity, steps: Iterator[NumberedStep]) -> None:
        """`steps` is an iterator, because the steps of a year do not fit into memory."""
        self.who: Final = who
        self._steps: Final = steps
        self.next: NumberedStep | None = next(steps, None)
        self.rejected_bytes = 0
        self._throttle_seconds = 0.0
        self._delayed_bytes = 0.0
        self._late_seconds = 0.0

    def sent(self, now: float, wait: float) -> NumberedStep | None:
        """Record that the current step was sent now and throttled for `wait` seconds; return the next one."""
        assert self.next is not None
        due, size, _ = self.next
        if now - due > _ON_TIME:
            self._delayed_bytes += size
            self._late_seconds = max(self._late_seconds, now - due)
        self._throttle_seconds += wait
        self.next = next(self._steps, None)
        return self.next

    def row(self, quota: str) -> Row:
        """Return what the quota did to the connection."""
        return (
            self.who.principal,
            self.who.client_id,
            quota,
            _whole(self._throttle_seconds * 1000),
            _whole(self._delayed_bytes),
            _whole(self._late_seconds * 1000),
            _whole(self.rejected_bytes),
        )


def _whole(value: float) -> int:
    return min(round(value), LARGEST)


def play(connections: Sequence[Connection], charge: Callable[[int, float, float], float]) -> None:
    """Send the steps of all connections in order of time. `charge` gets the connection's index, the bytes and
    the time, and returns the throttle time in seconds.
    """
    waiting = [(connection.next[0], place) for place, connection in enumerate(connections) if connection.next]
    heapq.heapify(waiting)
    while waiting:
        now, place = waiting[0]
        connection = connections[place]
        assert connection.next is not None
        wait = charge(place, connection.next[1], now)
        upcoming = connection.sent(now, wait)
        if upcoming is None:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, (max(now + wait, upcoming[0]), place))


def after_table(rows: Any, found: Sequence[Row]) -> Any:
    """Return the result of a simulation of `rows` as AFTER. All rows are of one cluster."""
    cluster = str(rows["cluster"].iloc[0])
    return pd.DataFrame([(cluster, *row) for row in found], columns=AFTER.names)


def intervals_of(tenant: Any, base: int) -> list[Interval]:
    """Return the intervals of a tenant at one place, in order.

    `tenant` has `interval_start_ms`, `interval_ms` and SUMS; times are relative to `base` (ms).
    """
    columns = [tenant[name].tolist() for name in ("interval_start_ms", "interval_ms", *SUMS)]
    found: list[Interval] = []
    for start, length, size, requests, throttled, waited in zip(*columns, strict=True):
        count = connections_of(throttled, waited, length)
        interval = Interval(
            start=(start - base) / 1000,
            length=length / 1000,
            size=size / count,
            requests=max(requests / count, 1.0),
            throttled=throttled / count,
            throttle_seconds=waited / 1000 / count,
            connections=count,
        )
        found.append(interval)
    return take_turns(found)


def has_places(rows: Any) -> bool:
    """Whether the rows of one state are of several places."""
    return len(rows[[*PLACE]].drop_duplicates()) > 1
