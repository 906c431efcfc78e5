"""The scenarios for every peer, in the order of the tables."""

from dataclasses import dataclass, replace
from typing import Final

from bench.peers.quota_proxy import KINDS

QUICK_PART: Final = 10
"""With --quick, the requests of a scenario are divided by this."""


@dataclass(frozen=True)
class Scenario:
    """One load. `kind`: `produce` or `fetch`. `size`: bytes of each partition.

    `depth`: requests in flight on each connection. `rate`: requests per second; 0: closed loop. `tenants`
    client ids have byte quotas. `joined`: the broker batches its responses, so that a proxy makes few system
    calls for many frames.
    """

    name: str
    title: str
    kind: str
    size: int
    requests: int
    partitions: int = 1
    connections: int = 4
    depth: int = 8
    rate: float = 0.0
    tenants: int = 1000
    joined: bool = False
    tls: bool = False
    """Clients use TLS; only peers that can terminate it take part."""
    kinds: tuple[str, ...] = ()
    """What the proxy enforces besides the byte quotas of the tenants."""

    def quick(self) -> "Scenario":
        """Return the scenario with a tenth of the requests, to check that everything runs."""
        return replace(self, requests=max(self.requests // QUICK_PART, self.connections))


SCENARIOS: Final = (
    Scenario("produce_bare", "Produce, 100 B, no quotas", "produce", 100, 100_000, tenants=0),
    Scenario("produce_small", "Produce, 100 B, byte quotas of 1,000 tenants", "produce", 100, 100_000),
    Scenario("produce_all", "Produce, 100 B, all kinds of quotas", "produce", 100, 100_000, kinds=KINDS),
    Scenario(
        "produce_joined",
        "Produce, 100 B, byte quotas, responses in bundles",
        "produce",
        100,
        100_000,
        joined=True,
    ),
    Scenario("produce_24", "Produce, 24 partitions of 1 KiB", "produce", 1024, 40_000, partitions=24),
    Scenario(
        "produce_24_all",
        "Produce, 24 partitions of 1 KiB, all kinds of quotas",
        "produce",
        1024,
        40_000,
        partitions=24,
        kinds=KINDS,
    ),
    Scenario("fetch_24", "Fetch, 24 partitions of 1 KiB", "fetch", 1024, 40_000, partitions=24),
    Scenario(
        "fetch_24_all",
        "Fetch, 24 partitions of 1 KiB, all kinds of quotas",
        "fetch",
        1024,
        40_000,
        partitions=24,
        kinds=KINDS,
    ),
    Scenario("fetch_1mb", "Fetch, 1 MB, 5 in flight", "fetch", 1_000_000, 4_000, depth=5),
    Scenario(
        "produce_900kb_all",
        "Produce, 900 KB, 5 in flight, all kinds of quotas",
        "produce",
        900_000,
        4_000,
        depth=5,
        kinds=KINDS,
    ),
    Scenario(
        "fetch_900kb_all",
        "Fetch, 900 KB, 5 in flight, all kinds of quotas",
        "fetch",
        900_000,
        4_000,
        depth=5,
        kinds=KINDS,
    ),
    Scenario("fetch_1mib", "Fetch, 1 MiB, 1 in flight, as consumers do", "fetch", 1 << 20, 4_000, depth=1),
    Scenario("produce_tls", "Produce, 100 B, over TLS", "produce", 100, 100_000, tls=True),
    Scenario("fetch_tls", "Fetch, 1 MB, 5 in flight, over TLS", "fetch", 1_000_000, 4_000, depth=5, tls=True),
    Scenario("open_loop", "Produce, 100 B, 3,000 requests/s", "produce", 100, 15_000, rate=3000.0),
    Scenario(
        "connections", "Produce, 100 B, 1,000 connections", "produce", 100, 50_000, connections=1000, depth=1
    ),
)
