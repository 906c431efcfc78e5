"""The time of a broker's threads that a Fetch takes, as far as its response shows it.

A broker looks at all partitions of a fetch, or of its session, and responds if there is enough data, or an
error. Otherwise it waits, and looks at all of them again when max_wait_ms is over. Kafka charges the time
until it waits, and the time to send the response. A proxy sees when the response arrives:

    before max_wait_ms    The broker may have waited for a part of this time: the charge is the time, but at
                          most 10 ms, 30 us for each partition, 200 ns for each byte of the request and 1 ns
                          for each byte of the response.
    later                 The broker has waited, and looked at the partitions before and after: the response
                          is late by at least the time that Kafka charges. Or there was no wait, but work for
                          longer than max_wait_ms. So the charge is the time by which the response is late,
                          1 ms and 10 us for each partition. If the response has no records, it is mostly late
                          because the broker's timer is, and the first of these terms is at most 100 us for
                          each partition. If it has no partition at all, the broker has waited, and the last
                          term is not charged.

Kafka 4.3.1 with the JVM flags of its scripts charged 0.2 to 0.4 ms for one partition, 2 to 6 us for each of
1,000, and 12 to 24 us for each of 5,000, on a machine with a load of 16 to 20.
"""

from typing import Final

from mypy_extensions import i64 as native

from proxy.wire.views import RequestView, ResponseView

MAY_HAVE_WAITED_SECONDS: Final = 0.01
"""The maximum charge for a small response, if it is unknown how long the broker waited."""
PER_REQUEST_BYTE: Final = 200e-9
"""Seconds. A broker works for 1 to 2 s on a fetch of 300,000 partitions that it does not have, which has
8 MB.
"""
PER_RESPONSE_BYTE: Final = 1e-9
"""Seconds: a broker that responds with 1 GB per second is busy all the time."""
_PER_PARTITION: Final = 30e-6
_LATE_SECONDS: Final = 0.001
"""Kafka's timer ends a wait up to 1 ms early."""
_LATE_PER_PARTITION: Final = 10e-6
_NOTHING_NEW_PER_PARTITION: Final = 100e-6
_EARLY_SECONDS: Final = 0.002
"""A response that is so little early may be one to a wait that is over: also the proxy's clock has steps."""
_NO_PARTITION_BYTES: Final = 16
"""throttle_time_ms, error_code, session_id, and arrays without elements."""
_EMPTY_BYTES: Final = 512
_EMPTY_PER_PARTITION: Final = 100
"""A response without records has no more bytes than these, and this many for each partition."""


def most_seconds(request: RequestView, response: ResponseView) -> float:
    """Return the maximum charge for a request to which a broker may respond after a wait for others."""
    sizes = float(request.size) * PER_REQUEST_BYTE + float(response.body_size) * PER_RESPONSE_BYTE
    return MAY_HAVE_WAITED_SECONDS + sizes


def fetch_seconds(request: RequestView, response: ResponseView) -> float:
    """Return what to charge for a Fetch. `service_seconds` of the response says when it arrived."""
    seconds = response.service_seconds
    # Without a min_bytes, a broker does not wait.
    asked = float(request.max_wait_ms) / 1000.0 if request.min_bytes > 0 else 0.0
    if asked <= 0.0:
        return seconds
    late = seconds - asked
    partitions = float(request.partitions)
    # If the client has closed the connection, only the time of the response is known, and not its size.
    size: native = response.body_size
    if late < -_EARLY_SECONDS:
        if partitions < 0.0:
            return seconds
        return min(seconds, most_seconds(request, response) + partitions * _PER_PARTITION)
    beyond = max(late, 0.0) + _LATE_SECONDS
    none = 0 < size <= _NO_PARTITION_BYTES
    if partitions < 0.0:
        return min(seconds, beyond) if none else seconds
    if size > 0 and float(size) <= _EMPTY_BYTES + partitions * _EMPTY_PER_PARTITION:
        beyond = min(beyond, _LATE_SECONDS + partitions * _NOTHING_NEW_PER_PARTITION)
    return min(seconds, beyond if none else beyond + partitions * _LATE_PER_PARTITION)
