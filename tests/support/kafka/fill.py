"""A topic with megabytes of messages, for tests that move or read them."""

from typing import Any, Final

from tests.support.kafka.clients import Confluent

PER_MEBIBYTE: Final = 128
"""Messages: small ones take several times as much time of the producer and of the broker."""


def fill(bootstrap: str, topic: str, mebibytes: int, **config: Any) -> int:
    """Produce numbered messages, from 0, in batches of 100 KB, and return their number.

    `config` is the producer's, as Confluent takes it.
    """
    count = mebibytes * PER_MEBIBYTE
    client = Confluent(batch_size=100_000, linger_ms=20, **config)
    client.send(bootstrap, topic, count, size=(1 << 20) // PER_MEBIBYTE)
    return count
