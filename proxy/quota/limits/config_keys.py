"""The configs of topics and brokers that are quotas of the proxy. Each kind of quota lists its own in KIND.

Every broker knows the rates and lists of replication (KIP-73). A broker without KAFKA-7983 does not know the
two switches of replication, and no broker knows the others (KAFKA-16042, and the broker-side quota).
"""

from typing import Final

from proxy.quota.limits.resources import (
    BOOLEAN,
    BROKER,
    FALSE,
    LIST,
    LONG,
    STRING,
    TOPIC,
    ConfigKey,
    split_list,
)

THROTTLE: Final = "throttle"
"""The request is forwarded, and its client is throttled."""
REJECT: Final = "reject"
"""Partitions over the quota are rejected with a retriable error; the rest of the request is forwarded."""
OMIT: Final = "omit"
"""Partitions over the quota are omitted from fetches."""
ALL_REPLICAS: Final = "*"

PRODUCER_BYTE_RATE: Final = ConfigKey(
    name="producer.byte.rate",
    resource=TOPIC,
    type=LONG,
    documentation=(
        "Bytes of records per second that producers may send to each partition of the topic, on each broker."
    ),
    default=None,
    least=1,
)
CONSUMER_BYTE_RATE: Final = ConfigKey(
    name="consumer.byte.rate",
    resource=TOPIC,
    type=LONG,
    documentation=(
        "Bytes of records per second that consumers may fetch from each partition of the topic, on each "
        "broker."
    ),
    default=None,
    least=1,
)
PRODUCER_BYTE_RATE_ACTION: Final = ConfigKey(
    name="producer.byte.rate.action",
    resource=TOPIC,
    type=STRING,
    documentation=(
        "What happens if a partition is over producer.byte.rate: throttle forwards the request and "
        "throttles the client; reject rejects the partition with a retriable error and forwards the "
        "rest of the request."
    ),
    default=THROTTLE,
    choices=(THROTTLE, REJECT),
)
CONSUMER_BYTE_RATE_ACTION: Final = ConfigKey(
    name="consumer.byte.rate.action",
    resource=TOPIC,
    type=STRING,
    documentation=(
        "What happens if a partition is over consumer.byte.rate: throttle throttles the client; omit "
        "omits the partition from fetches, and the client's other partitions continue."
    ),
    default=THROTTLE,
    choices=(THROTTLE, OMIT),
)
TOPIC_PRODUCER_BYTE_RATE: Final = ConfigKey(
    name="topic.producer.byte.rate",
    resource=TOPIC,
    type=LONG,
    documentation=(
        "Bytes of records per second that producers may send to the topic: to all its partitions, on all "
        "brokers."
    ),
    default=None,
    least=1,
)
TOPIC_CONSUMER_BYTE_RATE: Final = ConfigKey(
    name="topic.consumer.byte.rate",
    resource=TOPIC,
    type=LONG,
    documentation=(
        "Bytes of records per second that consumers may fetch from the topic: from all its partitions, on "
        "all brokers."
    ),
    default=None,
    least=1,
)
TOPIC_PRODUCER_BYTE_RATE_ACTION: Final = ConfigKey(
    name="topic.producer.byte.rate.action",
    resource=TOPIC,
    type=STRING,
    documentation=(
        "What happens if the topic is over topic.producer.byte.rate: throttle forwards the request and "
        "throttles the client; reject rejects the topic's partitions with a retriable error and forwards the "
        "rest of the request."
    ),
    default=THROTTLE,
    choices=(THROTTLE, REJECT),
)
TOPIC_CONSUMER_BYTE_RATE_ACTION: Final = ConfigKey(
    name="topic.consumer.byte.rate.action",
    resource=TOPIC,
    type=STRING,
    documentation=(
        "What happens if the topic is over topic.consumer.byte.rate: throttle throttles the client; omit "
        "omits the topic's partitions from fetches, and the client's other partitions continue."
    ),
    default=THROTTLE,
    choices=(THROTTLE, OMIT),
)
BYTES_IN_THRESHOLD: Final = ConfigKey(
    name="bytes.in.per.sec.threshold",
    resource=TOPIC,
    type=LONG,
    documentation=(
        "The topic's share of total.bytes.in.per.sec.threshold on each broker, in bytes per second. "
        "Topics without it share the rest equally."
    ),
    default=None,
    least=1,
)
TOTAL_BYTES_IN_THRESHOLD: Final = ConfigKey(
    name="total.bytes.in.per.sec.threshold",
    resource=BROKER,
    type=LONG,
    documentation=(
        "Bytes of records per second that producers may send to the broker. While they send more, the "
        "proxy rejects data for topics over their share."
    ),
    default=None,
    least=1,
)


def check_throttled_replicas(text: str) -> str:
    """Why a list is invalid, by the rules and in the words of Kafka's ThrottledReplicaListValidator."""
    elements = split_list(text)
    if "".join(elements) == ALL_REPLICAS or all(_is_replica(element) for element in elements):
        return ""
    return (
        "must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def _is_replica(element: str) -> bool:
    partition, colon, broker = element.partition(":")
    numbers = partition.isascii() and partition.isdigit() and broker.isascii() and broker.isdigit()
    return not element or (colon == ":" and numbers)


LEADER_THROTTLED_REPLICAS: Final = ConfigKey(
    name="leader.replication.throttled.replicas",
    resource=TOPIC,
    type=LIST,
    documentation=(
        "Replicas, as partition:broker, whose leaders are throttled by "
        "leader.replication.throttled.rate; * for all of the topic."
    ),
    default="",
    check=check_throttled_replicas,
)
FOLLOWER_THROTTLED_REPLICAS: Final = ConfigKey(
    name="follower.replication.throttled.replicas",
    resource=TOPIC,
    type=LIST,
    documentation=(
        "Replicas, as partition:broker, that are throttled by follower.replication.throttled.rate; * for "
        "all of the topic."
    ),
    default="",
    check=check_throttled_replicas,
)
LEADER_THROTTLED_RATE: Final = ConfigKey(
    name="leader.replication.throttled.rate",
    resource=BROKER,
    type=LONG,
    documentation=("Bytes per second of throttled replicas that the broker sends as a leader."),
    default=None,
)
FOLLOWER_THROTTLED_RATE: Final = ConfigKey(
    name="follower.replication.throttled.rate",
    resource=BROKER,
    type=LONG,
    documentation=("Bytes per second of throttled replicas that the broker fetches as a follower."),
    default=None,
)
LEADER_THROTTLED: Final = ConfigKey(
    name="leader.replication.throttled",
    resource=BROKER,
    type=BOOLEAN,
    documentation=(
        "Whether all replicas that the broker leads are throttled, whatever the topics' lists say."
    ),
    default=FALSE,
)
FOLLOWER_THROTTLED: Final = ConfigKey(
    name="follower.replication.throttled",
    resource=BROKER,
    type=BOOLEAN,
    documentation=(
        "Whether all replicas that the broker follows are throttled, whatever the topics' lists say."
    ),
    default=FALSE,
)
