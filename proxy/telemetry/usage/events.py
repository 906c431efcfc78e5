"""Usage events, version 1: the interface between the proxy and consumers of usage data.

One JSON object per interval, broker, user, client id, API, topic and partition with traffic. Later versions
may add fields, and never change or remove one. docs/usage-events.md describes the fields.
"""

from typing import Final, NamedTuple

import msgspec

VERSION: Final = 1


class UsageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What one client used in one interval, with one API, on one broker and partition."""

    v: int = VERSION
    cluster: str
    """The cluster's name in the configuration."""
    proxy: str
    """The proxy process: the host name and a random part."""
    broker: int
    """Node id."""
    listener: str
    interval_start_ms: int
    """Milliseconds since the epoch; a multiple of the configured interval."""
    interval_ms: int
    user: str
    client_id: str
    api: str
    """The API's name in Kafka, such as Produce."""
    topic: str | None
    """None in the event with the requests, their throttle times, and all bytes outside of partitions'
    records."""
    partition: int | None
    """None without a topic, and for the topic `<rest>`, which sums up what exceeds the bounds of an
    interval."""
    requests: int
    bytes_in: int
    """Bytes to the broker, including the length prefixes of frames."""
    bytes_out: int
    throttled_requests: int
    throttle_ms: int
    rejected_requests: int
    rejected_bytes: int
    quota: str | None
    """The kind of quota that throttled or rejected most."""


class Encoded(NamedTuple):
    """An event in the form that sinks deliver."""

    key: bytes
    """The same for all events of a client, so that a topic keeps them in one partition, in order."""
    value: bytes
    """JSON, without a newline."""


_encoder: Final = msgspec.json.Encoder()


def encode(event: UsageEvent) -> Encoded:
    """Encode an event for the sinks."""
    return Encoded(f"{event.user}/{event.client_id}".encode(), _encoder.encode(event))
