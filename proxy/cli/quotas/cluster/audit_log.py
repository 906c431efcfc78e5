"""The topic of quota changes as an audit log: who changed what, when, and from where.

A record's key is JSON `{"kind": "client-quota", "entity": {...}, "name": QUOTA}`, with `"temporary": true` if
the quota has an expiry; its value is
`{"v": 1, "value": NUMBER|null, "removed", "expires_at_ms", "by", "client_id", "from", "at_ms"}`. For kind
"config", configs of topics and brokers, the entity is `{"topic": NAME|null}` or `{"broker": ID|null}`, and
the value is text. The topic is compacted: of several changes to one quota only the last may be left.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName

from proxy.cli.quotas.entity import Entity, make_entity
from proxy.errors import QuotaProxyError, UpstreamUnavailable
from proxy.quota.identity import DEFAULT_IN_YAML
from proxy.store.consumers import stop_consumer
from proxy.tasks import Tasks
from proxy.upstream.broker_connection import CLIENT_ID, BrokerConnection, connect_to_any
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.kafka_clients import kafka_consumer

KINDS: Final = ("client-quota", "config")
READ_SECONDS: Final = 30.0
"""The longest wait for records, and the timeout of a request."""


class TopicMissing(QuotaProxyError):
    """The cluster does not have the topic."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One record. `value` is None if the quota was removed. Times are in ms since the epoch.

    If `kind` is unknown, `entity` is None and `name` is the rest of the key.
    """

    at_ms: int
    by: str
    client_id: str
    address: str
    kind: str
    entity: Entity | None
    name: str
    value: object
    overrides_file: bool
    """Whether a removal overrides the value of the configuration file; otherwise the file's value applies, if
    there is one."""
    temporary: bool
    expires_at_ms: int | None


async def read_log(cluster: ClusterAccess, topic: str) -> tuple[list[AuditEntry], int]:
    """The current entries of the topic, oldest first, and the number of unreadable records.

    Raises TopicMissing, and UpstreamUnavailable if the topic cannot be read.
    """
    partitions = await _partitions(cluster, topic)
    consumer = kafka_consumer(
        cluster,
        client_id=CLIENT_ID,
        # Not seek_to_beginning(): assign() starts a reset to the latest offset, which can complete after it.
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        request_timeout_ms=int(READ_SECONDS * 1000),
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
        raise UpstreamUnavailable(f"cannot read topic {topic}: {error}") from error
    finally:
        await stop_consumer(consumer, Tasks())
    return sorted(entries, key=lambda entry: entry.at_ms), unreadable


def parse(key: bytes | None, value: bytes | None, timestamp_ms: int) -> AuditEntry | None:
    """The entry of a record; None if the record is not readable. A null value is a removal."""
    try:
        what: dict[str, Any] = json.loads(key or b"")
        how: dict[str, Any] = {} if value is None else json.loads(value)
        return _entry(what, how, timestamp_ms)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _entry(what: dict[str, Any], how: dict[str, Any], timestamp_ms: int) -> AuditEntry:
    """Return the entry of a decoded key and value. Raises what a wrong type or a missing key raises."""
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
        overrides_file=bool(how.get("removed")),
        temporary=bool(what.get("temporary")),
        expires_at_ms=None if expires_at_ms is None else int(expires_at_ms),
    )


async def _read(
    consumer: AIOKafkaConsumer, partitions: Sequence[TopicPartition]
) -> list["ConsumerRecord[bytes, bytes]"]:
    """Read the partitions up to their ends as of now. Raises UpstreamUnavailable if no data comes."""
    consumer.assign(partitions)
    ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
    records: list[ConsumerRecord[bytes, bytes]] = []
    clock = asyncio.get_running_loop().time
    give_up_at = clock() + READ_SECONDS
    while await _unread(consumer, ends):
        read = await consumer.getmany(timeout_ms=1000)
        if read:
            give_up_at = clock() + READ_SECONDS
        elif clock() > give_up_at:
            raise _no_data(partitions[0].topic)
        for partition, batch in read.items():
            records += [record for record in batch if record.offset < ends[partition]]
    return records


async def _unread(consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether the consumer has not reached the end of each partition."""
    try:
        # position() waits for the start of the log without a timeout.
        async with asyncio.timeout(READ_SECONDS):
            for partition, end in ends.items():
                if await consumer.position(partition) < end:
                    return True
    except TimeoutError as error:
        raise _no_data(next(iter(ends)).topic) from error
    return False


def _no_data(topic: str) -> UpstreamUnavailable:
    return UpstreamUnavailable(f"cannot read topic {topic}: no data for {READ_SECONDS:g} s")


async def _partitions(cluster: ClusterAccess, topic: str) -> list[int]:
    """The partitions of the topic. aiokafka's own metadata request would create a missing topic."""
    responses: list[MetadataResponse] = []

    async def request(broker: BrokerConnection) -> None:
        responses.append(await broker.ask(_metadata_request(topic), MetadataResponse))

    broker = await connect_to_any(cluster.bootstrap, cluster.access, READ_SECONDS, request)
    broker.close()
    return _found(topic, responses[-1])


def _found(topic: str, response: MetadataResponse) -> list[int]:
    code = response.topics[0].error_code if response.topics else ErrorCode.unknown_topic_or_partition
    if code == ErrorCode.unknown_topic_or_partition:
        raise TopicMissing(
            f"topic {topic} does not exist: no proxy has stored a change yet, or its topic has another name "
            "(quotas.store.topic in the proxy's configuration); set --topic to that name"
        )
    if code != ErrorCode.none:
        raise UpstreamUnavailable(f"cannot read topic {topic}: {code.name.upper()}")
    return [int(partition.partition_index) for partition in response.topics[0].partitions]


def _metadata_request(topic: str) -> MetadataRequest:
    return MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
