"""Tests wait for conditions, never for a time."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

Value = TypeVar("Value")
POLL_SECONDS: Final = 0.05
SHORTEST_SECONDS: Final = 0.02
LONGEST_SECONDS: Final = 0.15
SECONDS: Final = 60.0
"""A generous limit: other tests may use both cores at the same time."""


def wait_until(condition: Callable[[], Value], what: str, seconds: float = SECONDS) -> Value:
    """Return the condition's first value that is true. Raises AssertionError, which names `what`, after
    `seconds`.

    What takes long is asked for less often: most conditions cost the process under test some milliseconds.
    """
    started = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - started
        assert waited < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(min(max(waited / 10, SHORTEST_SECONDS), LONGEST_SECONDS))


async def reached(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Wait until the condition is true, while other tasks of the event loop run."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(POLL_SECONDS)
