"""Clients under quotas, simulated request by request, and the usage events that the proxy would write."""

import heapq
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.kinds.client_bytes import KIND
from proxy.quota.limits.limits import Limits
from proxy.wire.api_keys import PRODUCE
from proxy.wire.views import RequestView
from tests.support.messages.usage_events import make_event

INTERVAL: Final = 10
SERVICE_SECONDS: Final = 0.004


@dataclass(frozen=True, slots=True)
class Client:
    """A client with `connections` that each send requests of `size` bytes.

    Every `every` seconds, each sends `burst` requests, one after the other, as fast as their responses
    arrive. If `every` is 0, it sends without a pause.
    """

    user: str
    size: int
    connections: int = 1
    burst: int = 1
    every: float = 0.0
    sizes: tuple[int, ...] = ()
    """The sizes of requests in turn, instead of `size`."""


def run(
    clients: list[Client], limits: Limits, seconds: float, *, begin: float = 0.0, interval: int = INTERVAL
) -> list[dict[str, Any]]:
    """Return the events, with producer_byte_rate enforced: intervals of `interval` seconds begin at 0, and
    clients send from `begin` until `seconds`.
    """
    engine = QuotaEngine([KIND.build()])
    engine.configure(limits, 0.0)
    sums: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    waiting: list[tuple[float, int, Client, Identity, int]] = []
    for client in clients:
        for _ in range(client.connections):
            who = Identity(client.user, "", "")
            waiting.append((begin + 0.001 * len(waiting), len(waiting), client, who, 0))
    while waiting:
        now, place, client, who, sent = heapq.heappop(waiting)
        if now >= seconds:
            continue
        size = client.sizes[sent % len(client.sizes)] if client.sizes else client.size
        wait = engine.admit(RequestView(PRODUCE, 0, 0, "", size), who, now).throttle_seconds
        found = sums[client.user, int(now // interval)]
        found["requests"] += 1
        found["bytes_in"] += size
        if wait > 0:
            found["throttled_requests"] += 1
            found["throttle_ms"] += round(wait * 1000)
        after = now + max(wait, SERVICE_SECONDS)
        sent += 1
        if client.every and sent % client.burst == 0:
            after = max(after, (now // client.every + 1) * client.every)
        heapq.heappush(waiting, (after, place, client, who, sent))
    return [
        make_event(
            user=user,
            client_id="",
            at=number * interval * 1000,
            interval_ms=interval * 1000,
            **{"bytes_out": 0, **found},
            quota="producer_byte_rate" if found["throttled_requests"] else None,
        )
        for (user, number), found in sums.items()
    ]
