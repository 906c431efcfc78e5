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
        "Bytes of records per second that each partition of the topic takes from producers, on each broker."
    ),
    default=None,
    least=1,
)
CONSUMER_BYTE_RATE: Final = ConfigKey(
    name="consumer.byte.rate",
    resource=TOPIC,
    type=LONG,
    documentation=(
        "Bytes of records per second that each partition of the topic gives to consumers, on each broker."
    ),
    default=None,
    least=1,
)
PRODUCER_BYTE_RATE_ACTION: Final = ConfigKey(
    name="producer.byte.rate.action",
    resource=TOPIC,
    type=STRING,
    documentation=(
        "What happens to a producer whose partition is over producer.byte.rate: throttle does the "
        "request and makes its client wait; reject rejects that partition with a retriable error and "
        "does the rest."
    ),
    default=THROTTLE,
    choices=(THROTTLE, REJECT),
)
CONSUMER_BYTE_RATE_ACTION: Final = ConfigKey(
    name="consumer.byte.rate.action",
    resource=TOPIC,
    type=STRING,
    documentation=(
        "What happens to a consumer whose partition is over consumer.byte.rate: throttle answers the "
        "request and makes its client wait; omit leaves that partition out of the fetch and the others "
        "go on."
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
        "Topics without it have equal parts of what is left."
    ),
    default=None,
    least=1,
)
TOTAL_BYTES_IN_THRESHOLD: Final = ConfigKey(
    name="total.bytes.in.per.sec.threshold",
    resource=BROKER,
    type=LONG,
    documentation=(
        "Bytes per second that producers may bring to the broker. While they bring more, topics over "
        "their share are rejected."
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
        "it must be the literal '*' or a list of replicas in the following format: "
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
    documentation=("Bytes per second that the broker, as a leader, sends of throttled replicas."),
    default=None,
)
FOLLOWER_THROTTLED_RATE: Final = ConfigKey(
    name="follower.replication.throttled.rate",
    resource=BROKER,
    type=LONG,
    documentation=("Bytes per second that the broker, as a follower, fetches of throttled replicas."),
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
