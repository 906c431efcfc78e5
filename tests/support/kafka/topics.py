"""Topics, created and described at the brokers themselves, not through the proxy."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.messages.requests import (
    batches,
    create_topic,
    delete_topic,
    fetch,
    list_offsets,
    metadata,
    next_offset,
)
from tests.support.waiting import wait_until


def make_topic(
    kafka: EmbeddedKafka,
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    on: Sequence[Sequence[int]] = (),
    **configs: str | int,
) -> UUID:
    """Create a topic, wait until every broker knows the leaders and these are ready, and return its topic id.

    `on`: the brokers of each partition, the leader first; empty: Kafka chooses them. Configs have Kafka's
    names with `_` in place of the dots.
    """
    partitions = len(on) or partitions
    settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
    is_new = describe_topic(kafka.port(1), name).error_code == ErrorCode.unknown_topic_or_partition
    with RawClient(kafka.port(1)) as client:
        response = client.ask(create_topic(name, partitions, replicas, settings, on)).topics[0]
    # A broker that loses the controller's response sends it the request again.
    repeated = is_new and response.error_code == ErrorCode.topic_already_exists
    assert repeated or response.error_code == ErrorCode.none, f"{name}: {response!r}"
    for node_id in kafka.node_ids:
        wait_until(partial(_is_known, kafka, node_id, name, partitions), f"{name} at broker {node_id}")
    led: dict[int, list[int]] = {}
    for partition, leader in leaders(kafka, name).items():
        led.setdefault(leader, []).append(partition)
    for node_id, theirs in led.items():
        wait_until(partial(_is_led, kafka, node_id, name, theirs), f"{name}'s leader {node_id}", 120)
    topic_id = describe_topic(kafka.port(1), name).topic_id
    assert isinstance(topic_id, UUID)
    return topic_id


def _is_led(kafka: EmbeddedKafka, node_id: int, name: str, partitions: Sequence[int]) -> bool:
    """Whether the broker has created the partitions' logs. Metadata names it as the leader before that."""
    with RawClient(kafka.port(node_id)) as client:
        response = client.ask(list_offsets(name, partitions)).topics[0]
    return all(found.error_code == ErrorCode.none for found in response.partitions)


def _is_known(kafka: EmbeddedKafka, node_id: int, name: str, partitions: int) -> bool:
    topic = describe_topic(kafka.port(node_id), name)
    return len(topic.partitions) == partitions and all(found.leader_id >= 0 for found in topic.partitions)


def drop_topic(kafka: EmbeddedKafka, name: str) -> None:
    """Delete a topic, and wait until no broker knows it."""
    with RawClient(kafka.port(1)) as client:
        response = client.ask(delete_topic(name)).responses[0]
    assert response.error_code == ErrorCode.none, f"{name}: {response.error_code!r}"
    for node_id in kafka.node_ids:
        wait_until(partial(_is_gone, kafka, node_id, name), f"no {name} at broker {node_id}")


def _is_gone(kafka: EmbeddedKafka, node_id: int, name: str) -> bool:
    unknown: bool = (
        describe_topic(kafka.port(node_id), name).error_code == ErrorCode.unknown_topic_or_partition
    )
    return unknown


def describe_topic(port: int, name: str) -> Any:
    """Return a topic as the broker or proxy at this port describes it in a Metadata response."""
    with RawClient(port) as client:
        return client.ask(metadata([name])).topics[0]


def leaders(kafka: EmbeddedKafka, name: str) -> dict[int, int]:
    """The node id of each partition's leader, as the first broker knows it."""
    first = next(iter(kafka.node_ids))
    return {
        found.partition_index: found.leader_id for found in describe_topic(kafka.port(first), name).partitions
    }


def read_log(kafka: EmbeddedKafka, name: str, partition: int = 0) -> Iterator[bytes]:
    """Read a partition's records from its leader, in pieces that may end with a partial batch."""
    leader = leaders(kafka, name)[partition]
    wait_until(partial(_is_led, kafka, leader, name, [partition]), f"{name}'s leader {leader}")
    offset = 0
    with RawClient(kafka.port(leader)) as client:
        while True:
            found = client.ask(fetch(name, offset, partition=partition, max_bytes=8 << 20))
            response = found.responses[0].partitions[0]
            assert response.error_code == ErrorCode.none, f"{name}: {response.error_code!r}"
            if not response.records:
                assert offset >= response.high_watermark
                return
            yield bytes(response.records)
            offset = next_offset(response.records)
            if offset >= response.high_watermark:
                return


def appended(kafka: EmbeddedKafka, name: str, partition: int = 0) -> list[tuple[float, int]]:
    """The times (s) of a partition's batches, and their sizes. With `message.timestamp.type=LogAppendTime`,
    these are the times at which the broker appended them.
    """
    return [piece for records in read_log(kafka, name, partition) for piece in batches(records)]
