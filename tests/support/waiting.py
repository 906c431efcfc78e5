"""Tests wait for conditions, never for a time."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

Value = TypeVar("Value")
POLL_SECONDS: Final = 0.05
SECONDS: Final = 30.0
"""Long: two cores may be busy with everything else that is tested at the time."""


def wait_until(condition: Callable[[], Value], what: str, seconds: float = SECONDS) -> Value:
    """The condition's first value that is true; AssertionError, saying `what` did not come, after so long."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(POLL_SECONDS)
