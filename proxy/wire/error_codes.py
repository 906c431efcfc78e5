"""Kafka's error codes that the proxy writes or looks for."""

from typing import Final

UNSUPPORTED_VERSION: Final = 35
THROTTLING_QUOTA_EXCEEDED: Final = 89
