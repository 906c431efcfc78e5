"""Quota proxy for Apache Kafka."""

from typing import Final

__version__: Final = "0.1.0"
