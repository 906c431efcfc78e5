"""Throttling of a consumer whose fetch gets an empty response."""

from typing import Final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.grant import FetchGrant
from proxy.relay.exchange import Exchange
from proxy.relay.inflight import InFlight

LEAST_SECONDS: Final = 0.001
"""The shortest throttle time: an empty response to a full fetch is malformed if it announces none."""


def throttle_fetch(
    exchange: Exchange, grant: FetchGrant, engine: QuotaEngine, in_flight: InFlight, now: float
) -> float:
    """Mute the client until its buckets have paid their debts, and keep its places in their queues. Return
    the time until which it is muted: at most max_throttle_seconds, and no longer than RecordLocks allows,
    because its next fetch waits for the rest.
    """
    most = min(engine.max_throttle_seconds, in_flight.record_locks.longest_wait)
    seconds = min(max(grant.retry_seconds(now), LEAST_SECONDS), most)
    until = max(now + seconds, exchange.throttled_until)
    exchange.throttle(until, now)
    in_flight.mute(until)
    grant.keep_places(until)
    return until
