"""The overview of a process."""

from types import SimpleNamespace
from typing import Any

from proxy.server.console.overview import overview


def test_connections_and_shares() -> None:
    gateway = SimpleNamespace(
        name="clients",
        between_brokers=False,
        connection_count=5,
        pauses=lambda: ["throttled", "", "broker_full", "throttled", "connecting"],
    )
    listeners: Any = SimpleNamespace(all=[gateway], max_connections=100)
    found = overview(listeners, None)
    assert (found["max_connections"], found["workers"], found["sharing"]) == (100, 1, None)
    assert found["listeners"] == [
        {"name": "clients", "replication": False, "connections": 5, "muted": 2, "paused": 1}
    ]
    sharing: Any = SimpleNamespace(instance="a", instances=3, lag_seconds=0.5, degraded=True)
    shown = {"names": ["a"], "instances": 3, "lag_seconds": 0.5, "degraded": True}
    assert overview(listeners, sharing)["sharing"] == shown
