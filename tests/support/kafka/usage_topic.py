"""Usage events in a topic, read from the brokers and not through the proxy."""

import json
from typing import Any

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.topics import describe_topic, read_log
from tests.support.messages.requests import values


def events_of(kafka: EmbeddedKafka, topic: str) -> list[dict[str, Any]]:
    """The events of the topic, partition by partition."""
    partitions = describe_topic(kafka.port(1), topic).partitions
    return [
        json.loads(value)
        for partition in partitions
        for records in read_log(kafka, topic, partition.partition_index)
        for value in values(records)
    ]
