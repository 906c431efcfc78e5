"""The error codes of Kafka that the wire, quota and relay rings read or write."""

from typing import Final

REQUEST_TIMED_OUT: Final = 7
NOT_ENOUGH_REPLICAS: Final = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
TOPIC_AUTHORIZATION_FAILED: Final = 29
UNSUPPORTED_VERSION: Final = 35
SASL_AUTHENTICATION_FAILED: Final = 58
INVALID_FETCH_SESSION_EPOCH: Final = 71
THROTTLING_QUOTA_EXCEEDED: Final = 89


def appended(error_code: int) -> bool:
    """Whether records of a Produce request are in the log, by the error of their partition.

    With two errors they are, and only their replication is late.
    """
    return error_code in (0, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND)
