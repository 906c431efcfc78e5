"""The overview of a process, and that of several workers together."""

from collections.abc import Iterable
from typing import Any, Final

Overview = dict[str, Any]
"""The object of /api/overview; proxy.server.console.overview makes it."""
_SUMMED: Final = ("connections", "muted", "paused")


def merged_overview(of_workers: Iterable[Overview]) -> Overview | None:
    """One overview of all workers; None if there is none."""
    merged: Overview | None = None
    for each in of_workers:
        if merged is None:
            merged = each
            continue
        merged["workers"] += 1
        merged["max_connections"] += each["max_connections"]
        listeners = {listener["name"]: listener for listener in merged["listeners"]}
        for listener in each["listeners"]:
            for name in _SUMMED:
                listeners[listener["name"]][name] += listener[name]
        known, sharing = merged["sharing"], each["sharing"]
        if known is None or sharing is None:
            merged["sharing"] = known or sharing
            continue
        known["names"] += sharing["names"]
        known["instances"] = max(known["instances"], sharing["instances"])
        known["lag_seconds"] = max(known["lag_seconds"], sharing["lag_seconds"])
        known["degraded"] = known["degraded"] or sharing["degraded"]
    return merged
