"""Requests at any version that kio has."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from aiokafka.record.memory_records import MemoryRecords
from kafka.record.memory_records import MemoryRecordsBuilder

from proxy.wire.api_keys import (
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
)
from tests.support.messages.kio_messages import request_type

TOPIC_IDS_FROM: Final = 13
"""The first version of Produce and of Fetch that names topics by id."""
BATCH_HEADER: Final = 61
MAX_WAIT: Final = timedelta(milliseconds=500)


def build(schema: Any, /, **values: Any) -> Any:
    """Build an entity from the values of the fields that this version has."""
    names = {field.name for field in fields(schema)}
    return schema(**{name: value for name, value in values.items() if name in names})


def part(schema: Any, entity: str, /, **values: Any) -> Any:
    """Build an entity that is a part of a message."""
    return build(getattr(sys.modules[schema.__module__], entity), **values)


def batch(values: Iterable[bytes], magic: int = 2) -> bytes:
    """A record batch (magic 2), or a message set (0, 1), with these values and without keys."""
    builder = MemoryRecordsBuilder(magic, 0, 1 << 30)
    now = int(time.time() * 1000)  # Kafka would soon delete older records.
    for value in values:
        assert builder.append(timestamp=now, key=None, value=value)
    builder.close()
    return bytes(builder.buffer())


def values(records: bytes) -> list[bytes]:
    """The values of the batches of a Fetch response; a partial batch is skipped."""
    batches = MemoryRecords(records)
    found: list[bytes] = []
    while batches.has_next():
        one = batches.next_batch()
        assert one is not None
        found.extend(record.value or b"" for record in one)
    return found


def produce(
    topic: str,
    records: bytes,
    version: int = 9,
    *,
    topic_id: UUID | None = None,
    partition: int = 0,
    acks: int = -1,
) -> Any:
    """A Produce request with one partition."""
    schema = request_type(PRODUCE, version)
    data = part(schema, "PartitionProduceData", index=partition, records=records)
    to = part(schema, "TopicProduceData", name=topic, topic_id=topic_id, partition_data=(data,))
    return build(schema, acks=acks, timeout=timedelta(seconds=30), topic_data=(to,))


def fetch(
    topic: str,
    offset: int = 0,
    version: int = 12,
    *,
    topic_id: UUID | None = None,
    partition: int = 0,
    max_bytes: int = 1 << 20,
) -> Any:
    """A consumer's Fetch request of one partition, outside any session."""
    schema = request_type(FETCH, version)
    wanted = part(
        schema,
        "FetchPartition",
        partition=partition,
        fetch_offset=offset,
        log_start_offset=-1,
        partition_max_bytes=max_bytes,
    )
    of = part(schema, "FetchTopic", topic=topic, topic_id=topic_id, partitions=(wanted,))
    return build(
        schema,
        replica_id=-1,
        max_wait=MAX_WAIT,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=(of,),
        forgotten_topics_data=(),
    )


def metadata(topics: Iterable[str] | None = None, version: int = 12, *, create: bool = False) -> Any:
    """A Metadata request; None asks for every topic."""
    schema = request_type(METADATA, version)
    wanted = (
        None
        if topics is None
        else tuple(part(schema, "MetadataRequestTopic", name=name, topic_id=None) for name in topics)
    )
    if wanted is None and version == 0:
        wanted = ()
    return build(
        schema,
        topics=wanted,
        allow_auto_topic_creation=create,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def api_versions(version: int = 3) -> Any:
    return build(
        request_type(API_VERSIONS, version), client_software_name="tests", client_software_version="1"
    )


def create_topic(
    name: str, partitions: int, replicas: int, configs: Mapping[str, str], on: Sequence[Sequence[int]] = ()
) -> Any:
    """A CreateTopics request; `on`: the brokers of each partition; empty: Kafka chooses them."""
    schema = request_type(CREATE_TOPICS, 7)
    settings = tuple(
        part(schema, "CreatableTopicConfig", name=key, value=value) for key, value in configs.items()
    )
    placed = [
        part(schema, "CreatableReplicaAssignment", partition_index=index, broker_ids=tuple(brokers))
        for index, brokers in enumerate(on)
    ]
    topic = part(
        schema,
        "CreatableTopic",
        name=name,
        num_partitions=-1 if on else partitions,
        replication_factor=-1 if on else replicas,
        assignments=tuple(placed),
        configs=tuple(settings),
    )
    return build(schema, topics=(topic,), timeout=timedelta(seconds=30))


def delete_topic(name: str) -> Any:
    schema = request_type(DELETE_TOPICS, 6)
    topic = part(schema, "DeleteTopicState", name=name, topic_id=None)
    return build(schema, topics=(topic,), timeout=timedelta(seconds=30))


def batches(records: bytes) -> list[tuple[float, int]]:
    """The time (s) of the last record and the size of each whole batch of a Fetch response (magic 2)."""
    return [(int.from_bytes(batch[35:43], "big") / 1000, len(batch)) for batch in whole_batches(records)]


def leader_epochs(records: bytes) -> list[int]:
    """The leader epoch in which each whole batch of a Fetch response was appended."""
    return [int.from_bytes(batch[12:16], "big") for batch in whole_batches(records)]


def whole_batches(records: bytes) -> Iterator[bytes]:
    """The batches of a Fetch response, without the part of a batch at its end."""
    at = 0
    while at + BATCH_HEADER <= len(records):
        size = int.from_bytes(records[at + 8 : at + 12], "big") + 12
        if at + size > len(records):
            break
        yield records[at : at + size]
        at += size


def next_offset(records: bytes) -> int:
    """The offset after the last whole batch of a Fetch response (magic 2)."""
    at = offset = 0
    for _, size in batches(records):
        base = int.from_bytes(records[at : at + 8], "big")
        offset = base + int.from_bytes(records[at + 23 : at + 27], "big") + 1
        at += size
    return offset


def list_offsets(topic: str, partitions: Iterable[int]) -> Any:
    """A ListOffsets request for the ends of these partitions."""
    schema = request_type(LIST_OFFSETS, 8)
    ends = [part(schema, "ListOffsetsPartition", partition_index=index, timestamp=-1) for index in partitions]
    of = part(schema, "ListOffsetsTopic", name=topic, partitions=tuple(ends))
    return build(schema, replica_id=-1, isolation_level=0, topics=(of,))


def find_coordinator(key: str, key_type: int = 0, version: int = 6) -> Any:
    """A FindCoordinator request; key_type 0 for groups, 1 for transactions."""
    schema = request_type(FIND_COORDINATOR, version)
    return build(schema, key=key, coordinator_keys=(key,), key_type=key_type)


def describe_cluster(version: int = 2) -> Any:
    schema = request_type(DESCRIBE_CLUSTER, version)
    return build(schema, include_cluster_authorized_operations=False, include_fenced_brokers=False)


def share_fetch(topic_id: UUID, member_id: str, epoch: int = 0, version: int = 2) -> Any:
    """A ShareFetch request of partition 0; the share session opens at epoch 0."""
    schema = request_type(SHARE_FETCH, version)
    partition = part(schema, "FetchPartition", partition_index=0, acknowledgement_batches=())
    return build(
        schema,
        group_id="raw-share",
        member_id=member_id,
        share_session_epoch=epoch,
        max_wait=MAX_WAIT,
        min_bytes=0,
        max_bytes=1 << 20,
        max_records=100,
        batch_size=100,
        topics=(part(schema, "FetchTopic", topic_id=topic_id, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def share_acknowledge(topic_id: UUID, member_id: str, epoch: int, version: int = 2) -> Any:
    """A ShareAcknowledge request that accepts the first record of partition 0."""
    schema = request_type(SHARE_ACKNOWLEDGE, version)
    accepted = part(schema, "AcknowledgementBatch", first_offset=0, last_offset=0, acknowledge_types=(1,))
    partition = part(schema, "AcknowledgePartition", partition_index=0, acknowledgement_batches=(accepted,))
    return build(
        schema,
        group_id="raw-share",
        member_id=member_id,
        share_session_epoch=epoch,
        topics=(part(schema, "AcknowledgeTopic", topic_id=topic_id, partitions=(partition,)),),
    )
