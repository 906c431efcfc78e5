"""The error codes of Kafka that the wire, quota and relay rings read or write."""

from typing import Final

UNKNOWN_SERVER_ERROR: Final = -1
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
REQUEST_TIMED_OUT: Final = 7
INVALID_TOPIC_EXCEPTION: Final = 17
NOT_ENOUGH_REPLICAS: Final = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
TOPIC_AUTHORIZATION_FAILED: Final = 29
UNSUPPORTED_VERSION: Final = 35
INVALID_REPLICATION_FACTOR: Final = 38
INVALID_REPLICA_ASSIGNMENT: Final = 39
SASL_AUTHENTICATION_FAILED: Final = 58
INVALID_FETCH_SESSION_EPOCH: Final = 71
THROTTLING_QUOTA_EXCEEDED: Final = 89
UNKNOWN_TOPIC_ID: Final = 100

_NOT_WRITABLE: Final = frozenset(
    [UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID]
)


def not_writable(error_code: int) -> bool:
    """Whether a partition does not exist, or its producer may not write to it, by the partition's error."""
    return error_code in _NOT_WRITABLE


def appended(error_code: int) -> bool:
    """Whether records of a Produce request are in the log, by the error of their partition.

    With two errors they are, and only their replication is late.
    """
    return error_code in (0, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND)
