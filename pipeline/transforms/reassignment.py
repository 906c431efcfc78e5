"""Reassignment: the throttle of a partition reassignment, and how long it takes (KIP-73).

    MoveRatio  = partitions that move / all partitions
    MoveTime   = MoveRatio x TotalLogSizePerBroker x #Brokers / (throttle - max BytesInPerSec)
    IN < throttle < N - IN / R

TotalLogSizePerBroker is the mean over the brokers of their replicas' bytes, BytesInPerSec of a broker the sum
of the inbound rates of all its replicas, IN that of the busiest broker, R its replication factor and N the
network's bytes/s. With a throttle below IN a move never ends, because followers fall behind faster than they
catch up.

The formula assumes average partitions, and that brokers copy one after the other. Real throttles apply to
each broker by itself: to the bytes that it sends as the leader of moving partitions, and to those that it
receives for new replicas. The move ends when the broker with the largest ratio of bytes to throttle has
finished:

    sending    sum(Bytes x New) / (throttle - sum(BytesInPerSec x (New + Followers))), of what it leads
    receiving  sum(Bytes) / (throttle - sum(BytesInPerSec)), of its new replicas

New is the number of a partition's new replicas, Followers that of its other followers: they are in sync and
not throttled, but their fetches count (KAFKA-4313). Plain arithmetic on a cluster's partitions: no Spark.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from pipeline.errors import InputError

WITHIN_SECONDS: Final = 3600.0
"""The seconds for a move if neither a time nor a throttle is given."""
_ACCURACY: Final = 1.15
"""The largest relative difference of a real move from `expected_seconds`."""
Count = Annotated[int, Meta(ge=0)]
Rate = Annotated[float, Meta(ge=0)]
Brokers = Annotated[list[int], Meta(min_length=1)]


class Partition(Struct, frozen=True):
    """`bytes`: the size of one replica's log. `bytes_in_rate`: bytes/s that producers send to it; None:
    unknown. `leader`: None for the first replica.
    """

    topic: str
    partition: Count
    replicas: Brokers
    bytes: Count = 0
    bytes_in_rate: Rate | None = None
    leader: int | None = None

    @property
    def rate(self) -> float:
        """`bytes_in_rate`, or 0 if it is unknown."""
        return self.bytes_in_rate or 0.0


class Move(Struct, frozen=True):
    """The target replicas of a partition."""

    topic: str
    partition: Count
    replicas: Brokers


class Cluster(Struct, frozen=True):
    """The input of a plan."""

    brokers: Brokers
    partitions: list[Partition]
    moves: list[Move]


class Plan(Struct, frozen=True):
    """The throttle for kafka-reassign-partitions, and what to expect. Rates in bytes/s, times in seconds."""

    move_ratio: float
    bytes_to_move: int
    throttle: int
    move_seconds: float | None
    """By KIP-73's formula; None if the move never ends."""
    expected_seconds: float | None
    """With each broker's throttle by itself; None if the move never ends."""
    throttle_min: float | None
    """None if no inbound rate is known."""
    throttle_max: float | None
    """None without --network."""
    feasible: bool
    reason: str
    """Why the plan is not feasible; empty if it is."""
    fetch_response_max_bytes: int
    """The largest replica.fetch.response.max.bytes for which one response stays below throttle x quota
    window, and one response of every broker at the same time below network x quota window (without --network:
    throttle x quota window).
    """


def plan(
    cluster: Cluster,
    throttle: float | None = None,
    network: float | None = None,
    within: float | None = None,
    window_seconds: float = 11.0,
) -> Plan:
    """Plan with this throttle, or with the one that completes the moves `within` so many seconds, an hour if
    neither is given.

    `throttle` and `network`, the capacity of a broker, are in bytes/s. `window_seconds`: the brokers'
    replication.quota.window.num times replication.quota.window.size.seconds. Raises InputError if the moves
    do not match the cluster.
    """
    _check_distinct("partitions", cluster.partitions)
    _check_distinct("moves", cluster.moves)
    current = {(each.topic, each.partition): each for each in cluster.partitions}
    moving = [move for move in cluster.moves if _is_move(move, current, cluster.brokers)]
    ratio = len(moving) / len(cluster.partitions) if cluster.partitions else 0.0
    log_size = sum(each.bytes * len(each.replicas) for each in cluster.partitions) / len(cluster.brokers)
    work = ratio * log_size * len(cluster.brokers)
    busiest, most = _busiest(cluster)
    if throttle is None:
        throttle = _needed_throttle(most, work, WITHIN_SECONDS if within is None else within)
    highest = None if network is None else network - most / _replication_factor(cluster, busiest)
    seconds = 0.0 if not moving else work / (throttle - most) if throttle > most else None
    sides = _sides(moving, current)
    expected = _expected_seconds(sides, throttle)
    reason = _reason(seconds, throttle, busiest, most, highest, within) or _too_slow(sides, throttle, within)
    return Plan(
        move_ratio=ratio,
        bytes_to_move=_bytes_to_move(moving, current),
        throttle=math.ceil(throttle),
        move_seconds=seconds,
        expected_seconds=expected,
        throttle_min=most if any(each.bytes_in_rate is not None for each in cluster.partitions) else None,
        throttle_max=highest,
        feasible=not reason,
        reason=reason,
        fetch_response_max_bytes=_response_bytes(throttle, network, len(cluster.brokers), window_seconds),
    )


def _needed_throttle(most: float, work: float, seconds: float) -> float:
    """The throttle in bytes/s with which `work`, in bytes, ends in `seconds`. It is above `most`, the inbound
    bytes/s of the busiest broker, also if there is nothing to copy.
    """
    return max(math.ceil(most + work / seconds), math.floor(most) + 1)


def _bytes_to_move(moving: Sequence[Move], current: Mapping[tuple[str, int], Partition]) -> int:
    """The size of all replicas at brokers that have none of the partition yet."""
    total = 0
    for move in moving:
        partition = current[move.topic, move.partition]
        total += partition.bytes * len(set(move.replicas) - set(partition.replicas))
    return total


def _response_bytes(throttle: float, network: float | None, brokers: int, window_seconds: float) -> int:
    """Return Plan.fetch_response_max_bytes."""
    together = (throttle if network is None else network) / brokers
    return max(math.ceil(min(throttle, together) * window_seconds) - 1, 0)


class _Side:
    """What one broker sends or receives under its throttle: bytes now, and bytes/s that are added."""

    def __init__(self) -> None:
        self.bytes = 0
        self.rate = 0.0

    def seconds(self, throttle: float) -> float | None:
        """How long it takes; None if it never ends."""
        if not self.bytes:
            return 0.0
        return self.bytes / (throttle - self.rate) if throttle > self.rate else None


def _sides(
    moving: Sequence[Move], current: Mapping[tuple[str, int], Partition]
) -> dict[tuple[str, int], _Side]:
    """What each broker `sends` and `receives`."""
    sides: dict[tuple[str, int], _Side] = defaultdict(_Side)
    for move in moving:
        found = current[move.topic, move.partition]
        leader = found.replicas[0] if found.leader is None else found.leader
        new = set(move.replicas) - set(found.replicas)
        if not new:
            continue
        sending = sides["sends", leader]
        sending.bytes += found.bytes * len(new)
        sending.rate += found.rate * (len(new) + len(set(found.replicas) - {leader}))
        for broker in new:
            sides["receives", broker].bytes += found.bytes
            sides["receives", broker].rate += found.rate
    return sides


def _expected_seconds(sides: Mapping[tuple[str, int], _Side], throttle: float) -> float | None:
    """The time of the broker that takes the longest."""
    times = [side.seconds(throttle) for side in sides.values()]
    if None in times:
        return None
    return max((time for time in times if time is not None), default=0.0)


def _too_slow(sides: Mapping[tuple[str, int], _Side], throttle: float, within: float | None) -> str:
    """Why the move does not end, or not in time, although KIP-73's formula says that it does."""
    for (does, broker), side in sides.items():
        seconds = side.seconds(throttle)
        if seconds is None:
            return (
                f"it never ends: {throttle:,.0f} B/s is not above the {side.rate:,.0f} B/s that producers "
                f"add to what broker {broker} {does}"
            )
        if within is not None and seconds > within * _ACCURACY:
            return f"broker {broker} {does} for {seconds:,.0f} s, longer than the {within:,.0f} s asked for"
    return ""


def _check_distinct(what: str, found: Sequence[Partition | Move]) -> None:
    """Raise InputError if a partition is there twice: it would count twice."""
    seen: set[tuple[str, int]] = set()
    for each in found:
        if (each.topic, each.partition) in seen:
            raise InputError(f"the {what} have {each.topic}-{each.partition} twice")
        seen.add((each.topic, each.partition))


def _is_move(move: Move, current: dict[tuple[str, int], Partition], brokers: Sequence[int]) -> bool:
    """Whether a move changes the replicas. Raises InputError if it does not match the cluster."""
    found = current.get((move.topic, move.partition))
    if found is None:
        raise InputError(f"the moves have {move.topic}-{move.partition}, which is not in the cluster")
    strange = sorted(set(move.replicas) - set(brokers))
    if strange:
        raise InputError(
            f"the moves have {move.topic}-{move.partition} on broker {strange[0]}, which is not in the "
            "cluster"
        )
    return set(move.replicas) != set(found.replicas)


def _busiest(cluster: Cluster) -> tuple[int, float]:
    """The broker with the highest inbound rate, and that rate in bytes/s."""
    rates = dict.fromkeys(cluster.brokers, 0.0)
    for each in cluster.partitions:
        for broker in each.replicas:
            rates[broker] = rates.get(broker, 0.0) + each.rate
    return max(rates.items(), key=lambda item: item[1])


def _replication_factor(cluster: Cluster, broker: int) -> float:
    """The mean replication factor of the broker's partitions."""
    factors = [len(each.replicas) for each in cluster.partitions if broker in each.replicas]
    return sum(factors) / len(factors) if factors else 1.0


def _reason(
    seconds: float | None,
    throttle: float,
    busiest: int,
    most: float,
    highest: float | None,
    within: float | None,
) -> str:
    """Why the plan is not feasible by KIP-73's formula, as a sentence; empty if it is."""
    if seconds is None:
        return (
            f"it never ends: {throttle:,.0f} B/s is not above the {most:,.0f} B/s that broker {busiest} "
            "takes in, so its followers fall behind"
        )
    if highest is not None and throttle >= highest:
        return (
            f"{throttle:,.0f} B/s is not below the {highest:,.0f} B/s that the network leaves to broker "
            f"{busiest} beside its own traffic"
        )
    if within is not None and seconds > within:
        return f"it takes {seconds:,.0f} s, longer than the {within:,.0f} s asked for"
    return ""
