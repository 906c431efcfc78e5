"""Connections of hosts that have only what a test needs."""

import asyncio
from typing import Any

from proxy.server.connection.connection import Connection
from proxy.server.connection.origin import Origin


def new_connection(host: Any, loop: asyncio.AbstractEventLoop, origin: Origin | None = None) -> Any:
    """A connection to broker 1. It is a protocol of asyncio in all but the base class."""
    return Connection(host, 1, loop, False, origin)
