"""Bytes of records per second of a whole topic: of all its partitions, on all brokers.

The quotas are the configs topic.producer.byte.rate and topic.consumer.byte.rate of topics. They are charged
and enforced as the quotas of the topic's partitions are (proxy.quota.kinds.topic_partition_bytes). A topic
may have quotas of both kinds. `omit` omits all partitions of a topic that is over its limit.
"""

from typing import Final

from proxy.quota.kinds.topic_partition_bytes.kind import RateConfigs, TopicPartitionBytes
from proxy.quota.limits.config_keys import (
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE_ACTION,
    TOPIC_PRODUCER_BYTE_RATE,
    TOPIC_PRODUCER_BYTE_RATE_ACTION,
)
from proxy.quota.quota import PER_CLUSTER, Quota, QuotaKind

TOPIC_CONFIGS: Final = RateConfigs(
    TOPIC_PRODUCER_BYTE_RATE,
    TOPIC_PRODUCER_BYTE_RATE_ACTION,
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE_ACTION,
    whole_topic=True,
)


def build() -> Quota:
    """Make the quota of all topics, without limits."""
    return TopicPartitionBytes(TOPIC_CONFIGS)


KIND: Final = QuotaKind(
    name="topic_bytes",
    keys=(),
    scope=PER_CLUSTER,
    build=build,
    configs=TOPIC_CONFIGS.all,
)
