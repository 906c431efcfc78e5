"""The overview of a process: connections by listener, and how limits are shared."""

import proxy
from proxy.server.limit_sharing import LimitSharing
from proxy.server.listeners import Listeners
from proxy.telemetry.overview import Overview


def overview(listeners: Listeners, sharing: LimitSharing | None) -> Overview:
    """What the process shows."""
    return {
        "version": proxy.__version__,
        "compiled": proxy.COMPILED,
        "workers": 1,
        "max_connections": listeners.max_connections,
        "listeners": [
            {
                "name": gateway.name,
                "replication": gateway.between_brokers,
                "connections": gateway.connection_count,
                "muted": gateway.muted_count,
                "paused": gateway.paused_count,
            }
            for gateway in listeners.all
        ],
        "sharing": None
        if sharing is None
        else {
            "instances": sharing.instances,
            "lag_seconds": sharing.lag_seconds,
            "degraded": sharing.degraded,
        },
    }
