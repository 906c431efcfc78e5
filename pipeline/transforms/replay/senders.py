"""Senders: tenants that send again what they sent in the events, each through one or several connections."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.transforms.replay.layout import AS_THEY_CAME, AT_ONCE, Interval, always_waits, lay_out
from pipeline.transforms.replay.played import STEP_SECONDS, Connection, NumberedStep
from pipeline.transforms.replay.sequence import in_sequence
from proxy.quota.identity import Identity

_LEAST_OF_TRIED: Final = 0.95
_MOST_OF_TRIED: Final = 1.25
"""Between these parts of the tried limit, a measured limit is taken as the tried one. It is slightly too
high, because the first throttled request waits only for what the bucket lacks.
"""


@dataclass(frozen=True, slots=True)
class Sender:
    """A tenant at one broker of one proxy: its intervals, in order, and the tried limit in bytes/s."""

    user: str
    client_id: str
    intervals: Sequence[Interval]
    limit: float


@dataclass(frozen=True, slots=True)
class ThrottledRate:
    """The limit in bytes/s that throttled a sender in the events, 0.0 if none did. `in_force`: whether it is
    the tried limit, or the sender's part of it.
    """

    limit: float
    in_force: bool


def connections(
    senders: Sequence[Sender], burst_seconds: float, *, together: bool
) -> Iterator[tuple[int, Connection]]:
    """Yield each sender's connections, as many as waited at the same time, with the index of the sender.

    `burst_seconds`: the content of a full bucket, in seconds at the limit. `together`: the senders send at
    several brokers or proxies, each of which has a part of the limit.
    """
    for index, (sender, was) in enumerate(zip(senders, throttled_rates(senders, together), strict=True)):
        intervals = in_sequence(sender.intervals, was.limit, burst_seconds)
        # Senders that share the limit take turns: larger steps would get more of it.
        per_second = was.limit if together and was.in_force else sender.limit
        for place in range(1 + max((each for interval in intervals for each in interval.places), default=-1)):
            steps = _steps(intervals, place, per_second, was, burst_seconds)
            # A bucket divides its debt among connections, each of which is an Identity of its own.
            yield index, Connection(Identity(sender.user, sender.client_id, ""), steps)


def _steps(
    intervals: Sequence[Interval], place: int, per_second: float, was: ThrottledRate, burst_seconds: float
) -> Iterator[NumberedStep]:
    """Yield the steps of the connection with the number `place`; it skips intervals in which others send.

    `per_second`: bytes/s of which each step takes STEP_SECONDS, over all connections.
    """
    eager = AT_ONCE if was.in_force else AS_THEY_CAME
    for number, interval in enumerate(intervals):
        if place in interval.places:
            per_step = max(per_second * STEP_SECONDS / interval.connections, 1.0)
            limit = was.limit / interval.waiting
            for time, size in lay_out(interval, limit, eager, burst_seconds, per_step):
                yield time, size, number


def throttled_rates(senders: Sequence[Sender], together: bool) -> list[ThrottledRate]:
    """Estimate the limits that throttled the senders of a bucket.

    If they send `together`, parts that add up to nearly the lowest tried limit are taken as parts of it.
    """
    if not together:
        rates = [throttled_rate(each.intervals, each.limit) for each in senders]
        return [ThrottledRate(rate, rate == each.limit) for rate, each in zip(rates, senders, strict=True)]
    parts = [throttled_rate(each.intervals, math.inf) for each in senders]
    tried = min((each.limit for each in senders), default=math.inf)
    if not _is_near(sum(parts), tried):
        return [ThrottledRate(part, in_force=False) for part in parts]
    return [ThrottledRate(part * tried / sum(parts), in_force=True) for part in parts]


def throttled_rate(intervals: Sequence[Interval], tried: float) -> float:
    """Estimate the limit in bytes/s that throttled a tenant; 0.0 if none did.

    A throttled tenant receives its bytes at the rate of the limit. Intervals in which every request waited
    give the best estimate, because requests differ in size. An estimate near the `tried` limit is taken as
    that limit.
    """
    waiting = [each for each in intervals if each.throttled > 0 and each.throttle_seconds > 0]
    best = list(filter(always_waits, waiting)) or waiting
    size = sum(each.size * each.throttled / each.requests * each.waiting for each in best)
    seconds = sum(each.throttle_seconds for each in best)
    if seconds <= 0 or size <= 0:
        return 0.0
    limit = size / seconds
    return tried if _is_near(limit, tried) else limit


def _is_near(limit: float, tried: float) -> bool:
    return _LEAST_OF_TRIED <= limit / tried <= _MOST_OF_TRIED
