"""The clock of the event loop, for all its connections."""

import asyncio
from collections.abc import Callable

Clock = Callable[[], float]

_clock: Clock | None = None
_loop: asyncio.AbstractEventLoop | None = None


def loop_clock(loop: asyncio.AbstractEventLoop) -> Clock:
    """Return `loop.time`: one object, where each connection would otherwise keep its own bound method."""
    global _clock, _loop
    if _clock is None or _loop is not loop:
        _clock = loop.time
        _loop = loop
    return _clock
