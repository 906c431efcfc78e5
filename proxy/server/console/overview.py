"""The overview of a process: connections by listener, and how limits are shared."""

from collections import Counter
from typing import Any

import proxy
from proxy.server.connection.pauses import BY_BROKER, BY_CLIENT, BY_QUOTA
from proxy.server.limit_sharing import LimitSharing
from proxy.server.listener.gateway import Gateway
from proxy.server.listeners import Listeners
from proxy.telemetry.overview import Overview


def overview(listeners: Listeners, sharing: LimitSharing | None) -> Overview:
    """Return the connections of each listener, and how the process shares limits."""
    return {
        "version": proxy.__version__,
        "compiled": proxy.COMPILED,
        "workers": 1,
        "max_connections": listeners.max_connections,
        "listeners": [_listener(gateway) for gateway in listeners.all],
        "sharing": None
        if sharing is None
        else {
            "names": [sharing.instance],
            "instances": sharing.instances,
            "lag_seconds": sharing.lag_seconds,
            "degraded": sharing.degraded,
        },
    }


def _listener(gateway: Gateway) -> dict[str, Any]:
    reasons = Counter(gateway.pauses())
    return {
        "name": gateway.name,
        "replication": gateway.between_brokers,
        "connections": gateway.connection_count,
        "muted": reasons[BY_QUOTA],
        "paused": reasons[BY_BROKER] + reasons[BY_CLIENT],
    }
