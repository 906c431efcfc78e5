"""The overview of several workers."""

from typing import Any

from proxy.telemetry.overview import merged_overview


def of_worker(connections: int, lag: float, name: str = "a") -> dict[str, Any]:
    return {
        "workers": 1,
        "max_connections": 10,
        "listeners": [{"name": "clients", "connections": connections, "muted": 1, "paused": 0}],
        "sharing": {"names": [name], "instances": 2, "lag_seconds": lag, "degraded": lag > 1},
    }


def test_counts_add_up_and_the_worst_is_shown() -> None:
    merged = merged_overview([of_worker(3, 0.1), of_worker(4, 2.0, "b")])
    assert merged == {
        "workers": 2,
        "max_connections": 20,
        "listeners": [{"name": "clients", "connections": 7, "muted": 2, "paused": 0}],
        "sharing": {"names": ["a", "b"], "instances": 2, "lag_seconds": 2.0, "degraded": True},
    }
    assert merged_overview([]) is None
    alone = {**of_worker(1, 0.0), "sharing": None}
    assert merged_overview([alone, {**alone}])["sharing"] is None  # type: ignore[index]
