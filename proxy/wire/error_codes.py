"""Kafka's error codes that the proxy writes or looks for."""

from typing import Final

UNSUPPORTED_VERSION: Final = 35
