"""The attacks: each is a function of the target that returns what one client sends.

To add one, write such a function, and add it to ATTACKS with a sentence about it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.attacks import frames
from bench.load.frames import record_batch

PARTITIONS: Final = 1000
"""The number of partitions that one request of a flood names. The topic of the attacker has fewer."""


PLAIN: Final = 4
FLEXIBLE: Final = 5
NOWHERE: Final = 0
"""Where a response has throttle_time_ms. The header of a flexible version has a byte for its tags."""


@dataclass(frozen=True, slots=True)
class Target:
    """A broker, or the broker's port at the proxy, that is attacked."""

    port: int
    """The port of the broker, or that of the proxy for it."""
    topic: str
    """A topic on which the attacker has every right."""
    topic_id: bytes
    tls_port: int = 0
    """The port of the TLS listener; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class Flood:
    """Requests that are repeated on several connections."""

    requests: Sequence[bytes]
    """They are sent in turn."""
    connections: int = 10
    in_flight: int = 1
    """How many requests of a connection may await their responses."""
    throttle_at: int = PLAIN
    """Where a response has throttle_time_ms, after its length; NOWHERE if it has none."""
    piece_bytes: int = 0
    """Each request is sent in pieces of this size, with a pause after each; 0: whole."""
    reads: bool = True
    """Whether the client reads its responses."""
    tls_handshakes: bool = False
    """Each connection makes a TLS handshake and ends, without a request."""


def nothing(target: Target) -> Flood:
    """No attack: what the other figures must be compared with."""
    return Flood([], connections=0)


def describe_client_quotas(target: Target) -> Flood:
    """DescribeClientQuotas with 200,000 filter components, 1 MiB: the proxy takes no larger one."""
    return Flood([frames.describe_client_quotas(200_000)], connections=2)


def alter_client_quotas(target: Target) -> Flood:
    """AlterClientQuotas with 380,000 changes, 4 MiB: the proxy takes no larger one."""
    return Flood([frames.alter_client_quotas(380_000)], connections=2)


def fetch(target: Target) -> Flood:
    """Fetch of 300,000 partitions that do not exist."""
    return Flood([frames.fetch(target.topic, 300_000)], connections=2)


def fetch_at_most(target: Target) -> Flood:
    """Fetch of 18,000 partitions that do not exist, 512 KB: the proxy takes no larger one."""
    return Flood([frames.fetch(target.topic, 18_000)])


def fetch_on_many(target: Target) -> Flood:
    """Fetch of 1,000 partitions that do not exist, 28 KB, on 100 connections."""
    return Flood([frames.fetch(target.topic, 1000)], connections=100)


def api_versions(target: Target) -> Flood:
    """ApiVersions of an unknown version, 1,000 in flight."""
    return Flood([frames.api_versions()], in_flight=1000, throttle_at=NOWHERE)


def metadata(target: Target) -> Flood:
    """Metadata of 10,000 topics that do not exist."""
    return Flood([frames.metadata(f"no-such-topic-{number}" for number in range(10_000))])


def list_offsets(target: Target) -> Flood:
    """ListOffsets by timestamp in 1,000 partitions."""
    return Flood([frames.list_offsets(target.topic, PARTITIONS)])


def offset_for_leader_epoch(target: Target) -> Flood:
    """OffsetForLeaderEpoch of 1,000 partitions."""
    return Flood([frames.offset_for_leader_epoch(target.topic, PARTITIONS)])


def delete_records(target: Target) -> Flood:
    """DeleteRecords of 1,000 partitions."""
    return Flood([frames.delete_records(target.topic, PARTITIONS)])


def init_producer_id(target: Target) -> Flood:
    """InitProducerId with 1,000 transactional ids."""
    return Flood([frames.init_producer_id(f"attack-{number}") for number in range(1000)])


def add_partitions_to_txn(target: Target) -> Flood:
    """AddPartitionsToTxn of 1,000 partitions, by a producer that does not exist."""
    return Flood([frames.add_partitions_to_txn("attack-1", target.topic, PARTITIONS)])


def end_txn(target: Target) -> Flood:
    """EndTxn of a producer that does not exist."""
    return Flood([frames.end_txn("attack-1")])


def share_fetch(target: Target) -> Flood:
    """ShareFetch that opens a session, again and again."""
    return Flood([frames.share_fetch("attack", "AAAAAAAAAAAAAAAAAAAAAQ", 0)], throttle_at=FLEXIBLE)


def share_acknowledge(target: Target) -> Flood:
    """ShareAcknowledge of 10,000 batches that were not delivered."""
    return Flood(
        [frames.share_acknowledge("attack", "AAAAAAAAAAAAAAAAAAAAAQ", target.topic_id, 10_000)],
        throttle_at=FLEXIBLE,
    )


def create_topics(target: Target) -> Flood:
    """CreateTopics of 10,000 topics with an invalid name, only validated."""
    return Flood(
        [frames.create_topics(f"no topic {number}" for number in range(10_000))],
        connections=2,
        throttle_at=FLEXIBLE,
    )


def incremental_alter_configs(target: Target) -> Flood:
    """IncrementalAlterConfigs of 10,000 topics that do not exist, only validated."""
    names = (f"no-such-topic-{number}" for number in range(10_000))
    return Flood([frames.incremental_alter_configs(names)], connections=2, throttle_at=FLEXIBLE)


def heartbeats(target: Target) -> Flood:
    """Heartbeat of a member that does not exist, 1,000 in flight."""
    return Flood([frames.heartbeat("attack")], in_flight=1000)


def consumer_group_heartbeat(target: Target) -> Flood:
    """ConsumerGroupHeartbeat with 10,000 topics."""
    names = (f"no-such-topic-{number}" for number in range(10_000))
    return Flood([frames.consumer_group_heartbeat("attack-new", names)], throttle_at=FLEXIBLE)


def push_telemetry(target: Target) -> Flood:
    """PushTelemetry of 900 KB that are no metrics."""
    return Flood([frames.push_telemetry(900_000)], throttle_at=FLEXIBLE)


def produce_without_acks(target: Target) -> Flood:
    """Produce with acks=0, as fast as the connection takes it."""
    request = frames.produce(target.topic, 0, record_batch(100), frames.CLIENT_ID, acks=0)
    return Flood([request], in_flight=1 << 30, throttle_at=NOWHERE)


def fetch_records(target: Target) -> Flood:
    """Fetch of 1 MB of records, 5 in flight."""
    return Flood([frames.fetch(target.topic, 1)], in_flight=5)


def slow_readers(target: Target) -> Flood:
    """Fetch of 50 MB of records, which 100 connections do not read."""
    return Flood([frames.fetch(target.topic, 1, max_bytes=50 << 20)], connections=100, reads=False)


def slow_writers(target: Target) -> Flood:
    """ListOffsets of 30,000 partitions, on 100 connections in pieces of 2 bytes."""
    return Flood([frames.list_offsets(target.topic, 30_000)], connections=100, piece_bytes=2)


def join_group(target: Target) -> Flood:
    """JoinGroup of ever new members of one group."""
    return Flood([frames.join_group("attack-join")])


def tls_handshakes(target: Target) -> Flood:
    """TLS handshakes, one after the other on 50 connections."""
    return Flood([], connections=50, tls_handshakes=True)


def title(name: str) -> str:
    """What an attack is: the beginning of its sentence."""
    return re.split(r"[:.]( |$)", ATTACKS[name].__doc__ or "", maxsplit=1)[0]


Attack = Callable[[Target], Flood]
ATTACKS: Final[dict[str, Attack]] = {
    attack.__name__: attack
    for attack in (
        nothing,
        describe_client_quotas,
        alter_client_quotas,
        fetch,
        fetch_at_most,
        fetch_on_many,
        api_versions,
        metadata,
        list_offsets,
        offset_for_leader_epoch,
        delete_records,
        init_producer_id,
        add_partitions_to_txn,
        end_txn,
        share_fetch,
        share_acknowledge,
        create_topics,
        incremental_alter_configs,
        heartbeats,
        consumer_group_heartbeat,
        push_telemetry,
        produce_without_acks,
        fetch_records,
        slow_readers,
        slow_writers,
        join_group,
        tls_handshakes,
    )
}
