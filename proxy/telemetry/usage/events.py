"""Usage events, version 1: the contract between the proxy and whoever adds up what was used.

One JSON object per interval, broker, user, client id, API, topic and partition that had traffic. Fields are
added in later versions, never changed or removed; docs/usage-events.md explains them.
"""

from typing import Final, NamedTuple

import msgspec

VERSION: Final = 1


class UsageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What one client has used in one interval."""

    v: int = VERSION
    cluster: str
    """The cluster's name in the proxy's configuration."""
    proxy: str
    """One run of one proxy process: the machine's name and a random part."""
    broker: int
    """Node id."""
    listener: str
    interval_start_ms: int
    """Since the epoch; a multiple of the configured interval."""
    interval_ms: int
    user: str
    client_id: str
    api: str
    """Kafka's name, such as Produce."""
    topic: str | None
    """None in the event that has the requests, their waits, and all bytes that are no partition's records."""
    partition: int | None
    """None there, and where the topic is `<rest>`: what is beyond the bounds of one interval."""
    requests: int
    bytes_in: int
    """Towards the broker, with Kafka's four-byte lengths."""
    bytes_out: int
    throttled_requests: int
    throttle_ms: int
    rejected_requests: int
    rejected_bytes: int
    quota: str | None
    """The kind of quota that bound it most."""


class Encoded(NamedTuple):
    """An event as sinks take it."""

    key: bytes
    """The same for all events of a client: a topic keeps them in one partition, in order."""
    value: bytes
    """JSON, without a newline."""


_encoder: Final = msgspec.json.Encoder()


def encode(event: UsageEvent) -> Encoded:
    return Encoded(f"{event.user}/{event.client_id}".encode(), _encoder.encode(event))
