"""The proxy's topic of quota changes, read as an audit trail: who changed what, when, and from where.

A record's key is JSON `{"kind": "client-quota", "entity": {...}, "name": QUOTA}`, with `"temporary": true`
where the quota has an expiry; its value is
`{"v": 1, "value": NUMBER|null, "expires_at_ms", "by", "client_id", "from", "at_ms"}`. Of kind "config", for
configs of topics and brokers, the entity is `{"topic": NAME|null}` or `{"broker": ID|null}`, the value text.
The topic is compacted, so of older changes to one quota only the last may be left.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName

from proxy.cli.quotas.entity import Entity, make_entity
from proxy.cli.quotas.servers import Servers
from proxy.errors import QuotaProxyError, UpstreamUnavailable
from proxy.quota.identity import DEFAULT_IN_YAML
from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.broker_connection import CLIENT_ID, BrokerConnection, explain

KINDS: Final = ("client-quota", "config")
READ_SECONDS: Final = 30.0


class TopicMissing(QuotaProxyError):
    """There is no such topic at the cluster."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One record. `value` is None where the quota was removed; times are in ms since the epoch.

    `entity` is None, and `name` the rest of the key, where the record is of a kind that is not known.
    """

    at_ms: int
    by: str
    client_id: str
    address: str
    kind: str
    entity: Entity | None
    name: str
    value: object
    temporary: bool
    expires_at_ms: int | None


async def read_log(bootstrap: Sequence[tuple[str, int]], topic: str) -> tuple[list[AuditEntry], int]:
    """The topic's entries up to now, oldest first, and how many records are none.

    Raises TopicMissing, and UpstreamUnavailable where the cluster cannot be read.
    """
    partitions = await _partitions(bootstrap, topic)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=[f"{host}:{port}" for host, port in bootstrap],
        **_access(bootstrap).for_aiokafka(),
        client_id=CLIENT_ID,
        # Not seek_to_beginning: the reset to the latest offset that assign() begins can come after it.
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    entries: list[AuditEntry] = []
    unreadable = 0
    try:
        await consumer.start()
        for record in await _read(consumer, [TopicPartition(topic, partition) for partition in partitions]):
            entry = parse(record.key, record.value, record.timestamp)
            if entry is None:
                unreadable += 1
            else:
                entries.append(entry)
    except KafkaError as error:
        raise UpstreamUnavailable(f"{topic} cannot be read: {error}") from error
    finally:
        await consumer.stop()
    return sorted(entries, key=lambda entry: entry.at_ms), unreadable


def parse(key: bytes | None, value: bytes | None, timestamp_ms: int) -> AuditEntry | None:
    """The entry that a record stands for; None where it is none. A null value is a removal."""
    try:
        what: dict[str, Any] = json.loads(key or b"")
        how: dict[str, Any] = {} if value is None else json.loads(value)
        return _entry(what, how, timestamp_ms)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _entry(what: dict[str, Any], how: dict[str, Any], timestamp_ms: int) -> AuditEntry:
    entity: Entity | None = None
    name = json.dumps({part: value for part, value in what.items() if part != "kind"}, ensure_ascii=False)
    if what["kind"] in KINDS:
        entity = make_entity(
            (str(part), None if value in (None, DEFAULT_IN_YAML) else str(value))
            for part, value in what["entity"].items()
        )
        name = str(what["name"])
    expires_at_ms = how.get("expires_at_ms")
    return AuditEntry(
        at_ms=int(how.get("at_ms", timestamp_ms)),
        by=str(how.get("by") or ""),
        client_id=str(how.get("client_id") or ""),
        address=str(how.get("from") or ""),
        kind=str(what["kind"]),
        entity=entity,
        name=name,
        value=how.get("value"),
        temporary=bool(what.get("temporary")),
        expires_at_ms=None if expires_at_ms is None else int(expires_at_ms),
    )


async def _read(
    consumer: AIOKafkaConsumer, partitions: Sequence[TopicPartition]
) -> list["ConsumerRecord[bytes, bytes]"]:
    consumer.assign(partitions)
    ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
    records: list[ConsumerRecord[bytes, bytes]] = []
    clock = asyncio.get_running_loop().time
    give_up_at = clock() + READ_SECONDS
    while any([await consumer.position(partition) < end for partition, end in ends.items()]):
        came = await consumer.getmany(timeout_ms=1000)
        if came:
            give_up_at = clock() + READ_SECONDS
        elif clock() > give_up_at:
            raise UpstreamUnavailable(f"{partitions[0].topic}: nothing came for {READ_SECONDS:g} s")
        for partition, batch in came.items():
            records += [record for record in batch if record.offset < ends[partition]]
    return records


def _access(bootstrap: Sequence[tuple[str, int]]) -> Access:
    return bootstrap.access if isinstance(bootstrap, Servers) else PLAINTEXT


async def _partitions(bootstrap: Sequence[tuple[str, int]], topic: str) -> list[int]:
    """Asked without aiokafka, whose own question would make a missing topic."""
    reasons: list[str] = []
    for host, port in bootstrap:
        try:
            async with asyncio.timeout(READ_SECONDS):
                broker = await BrokerConnection.open(host, port, _access(bootstrap))
                try:
                    answer = await broker.ask(_metadata_request(topic), MetadataResponse)
                finally:
                    broker.close()
        except (OSError, EOFError, UpstreamUnavailable) as error:
            reasons.append(f"{host}:{port}: {explain(error, READ_SECONDS)}")
            continue
        return _found(topic, answer)
    raise UpstreamUnavailable("; ".join(reasons))


def _found(topic: str, answer: MetadataResponse) -> list[int]:
    code = answer.topics[0].error_code if answer.topics else ErrorCode.unknown_topic_or_partition
    if code == ErrorCode.unknown_topic_or_partition:
        raise TopicMissing(
            f"{topic} is not there: no proxy has stored a change in it yet, or the store's topic has another "
            "name (quotas.store.topic in the proxy's configuration); name it with --topic"
        )
    if code != ErrorCode.none:
        raise UpstreamUnavailable(f"{topic} cannot be read: {code.name.upper()}")
    return [int(partition.partition_index) for partition in answer.topics[0].partitions]


def _metadata_request(topic: str) -> MetadataRequest:
    return MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
