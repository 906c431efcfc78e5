"""The error codes of Kafka that the wire, quota and relay rings read or write."""

from typing import Final

NOT_ENOUGH_REPLICAS: Final = 19
TOPIC_AUTHORIZATION_FAILED: Final = 29
UNSUPPORTED_VERSION: Final = 35
SASL_AUTHENTICATION_FAILED: Final = 58
INVALID_FETCH_SESSION_EPOCH: Final = 71
THROTTLING_QUOTA_EXCEEDED: Final = 89
