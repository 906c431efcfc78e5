"""Waiting until clients are served."""

import asyncio
from collections.abc import Callable
from typing import Final

SERVED_POLL_SECONDS: Final = 0.01
"""How often until_served() looks."""


async def until_served(served: Callable[[], bool], seconds: float) -> None:
    """Wait until `served` returns True, but at most this long: without a broker, clients are not served."""
    time = asyncio.get_running_loop().time
    latest = time() + seconds
    while not served() and time() < latest:  # noqa: ASYNC110
        await asyncio.sleep(SERVED_POLL_SECONDS)
