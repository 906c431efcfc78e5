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


def run(clients: list[Client], limits: Limits, seconds: float) -> list[dict[str, Any]]:
    """Return the events of this many seconds, with producer_byte_rate enforced."""
    engine = QuotaEngine([KIND.build()])
    engine.configure(limits, 0.0)
    sums: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    waiting: list[tuple[float, int, Client, Identity, int]] = []
    for client in clients:
        for _ in range(client.connections):
            who = Identity(client.user, "", "")
            waiting.append((0.001 * len(waiting), len(waiting), client, who, 0))
    while waiting:
        now, place, client, who, sent = heapq.heappop(waiting)
        if now >= seconds:
            continue
        wait = engine.admit(RequestView(PRODUCE, 0, 0, "", client.size), who, now).throttle_seconds
        found = sums[client.user, int(now // INTERVAL)]
        found["requests"] += 1
        found["bytes_in"] += client.size
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
            at=interval * INTERVAL * 1000,
            **{"bytes_out": 0, **found},
            quota="producer_byte_rate" if found["throttled_requests"] else None,
        )
        for (user, interval), found in sums.items()
    ]
