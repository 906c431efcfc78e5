"""Reassignment: the throttle of a partition reassignment, and how long it takes (KIP-73).

    MoveRatio  = partitions that move / all partitions
    MoveTime   = MoveRatio x TotalLogSizePerBroker x #Brokers / (throttle - max BytesInPerSec)
    IN < throttle < N - IN / R

TotalLogSizePerBroker is the mean over the brokers of their replicas' bytes, BytesInPerSec of a broker the sum
of the inbound rates of all its replicas, IN that of the busiest broker, R its replication factor and N the
network's bytes/s. With a throttle below IN a move never ends, because followers fall behind faster than they
catch up. Plain arithmetic on a cluster's partitions: no Spark.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from pipeline.errors import InputError

WITHIN_SECONDS: Final = 3600.0
"""The time for a move if neither a time nor a throttle is given."""
Count = Annotated[int, Meta(ge=0)]
Rate = Annotated[float, Meta(ge=0)]
Brokers = Annotated[list[int], Meta(min_length=1)]


class Partition(Struct, frozen=True):
    """`bytes`: the size of one replica's log. `bytes_in_rate`: bytes/s that producers send to it."""

    topic: str
    partition: Count
    replicas: Brokers
    bytes: Count = 0
    bytes_in_rate: Rate = 0.0


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
    """None if the move never ends."""
    throttle_min: float
    throttle_max: float | None
    """None without --network."""
    feasible: bool
    reason: str
    """Why the plan is not feasible; empty if it is."""
    fetch_response_max_bytes: int
    """The largest replica.fetch.response.max.bytes that stays below throttle x quota window."""


def plan(
    cluster: Cluster,
    throttle: float | None = None,
    network: float | None = None,
    within: float | None = None,
    window_seconds: float = 11.0,
) -> Plan:
    """Plan with this throttle, or with one that ends `within` so many seconds (an hour if neither is given).
    Raises InputError if the moves do not match the cluster.
    """
    current = {(each.topic, each.partition): each for each in cluster.partitions}
    moving = [move for move in cluster.moves if _is_move(move, current, cluster.brokers)]
    ratio = len(moving) / len(cluster.partitions) if cluster.partitions else 0.0
    log_size = sum(each.bytes * len(each.replicas) for each in cluster.partitions) / len(cluster.brokers)
    work = ratio * log_size * len(cluster.brokers)
    busiest, most = _busiest(cluster)
    if throttle is None:
        throttle = math.ceil(most + work / (WITHIN_SECONDS if within is None else within))
    highest = None if network is None else network - most / _replication_factor(cluster, busiest)
    seconds = 0.0 if not moving else work / (throttle - most) if throttle > most else None
    reason = _reason(seconds, throttle, busiest, most, highest, within)
    return Plan(
        move_ratio=ratio,
        bytes_to_move=sum(
            current[move.topic, move.partition].bytes
            * len(set(move.replicas) - set(current[move.topic, move.partition].replicas))
            for move in moving
        ),
        throttle=math.ceil(throttle),
        move_seconds=seconds,
        throttle_min=most,
        throttle_max=highest,
        feasible=not reason,
        reason=reason,
        fetch_response_max_bytes=max(math.ceil(throttle * window_seconds) - 1, 0),
    )


def _is_move(move: Move, current: dict[tuple[str, int], Partition], brokers: Sequence[int]) -> bool:
    found = current.get((move.topic, move.partition))
    if found is None:
        raise InputError(f"{move.topic}-{move.partition} is to move, but is no partition of the cluster")
    strange = sorted(set(move.replicas) - set(brokers))
    if strange:
        raise InputError(f"{move.topic}-{move.partition} is to move to {strange[0]}, which is no broker")
    return set(move.replicas) != set(found.replicas)


def _busiest(cluster: Cluster) -> tuple[int, float]:
    """The broker with the highest inbound rate, and that rate in bytes/s."""
    rates = dict.fromkeys(cluster.brokers, 0.0)
    for each in cluster.partitions:
        for broker in each.replicas:
            rates[broker] = rates.get(broker, 0.0) + each.bytes_in_rate
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
