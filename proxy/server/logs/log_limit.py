"""LogLimit: log lines about what clients do, at most a few a second for each cause."""

import logging
from collections.abc import Mapping
from typing import Final

LINES: Final = 5
"""For each cause in each window: enough examples for an operator. Each line is a write on the loop, and more
of them would delay other clients and fill the disk."""
WINDOW_SECONDS: Final = 1.0
"""Short, so that the first lines about a new client come soon."""
CAUSES_AT_MOST: Final = 1000
"""The proxy's causes are a fixed few. The bound is for a caller that takes them from a client's data."""


class LogLimit:
    """Logs LINES lines for each cause in WINDOW_SECONDS, then one line with the number of those omitted."""

    def __init__(self, log: logging.Logger, name: str) -> None:
        """`name` begins the lines that count, as it may begin the others: the listener's, for example."""
        self._log: Final = log
        self._name: Final = name
        self._windows: Final[dict[str, _Window]] = {}

    def warn(
        self, cause: str, now: float, message: str, *args: object, about: Mapping[str, str] | None = None
    ) -> None:
        """Log a warning, or count it if its cause has had its lines. `about`: the fields of a JSON log."""
        window = self._window(cause, now)
        window.lines += 1
        if window.lines <= LINES:
            self._log.warning(message, *args, extra=about)

    def allows(self, cause: str, now: float) -> bool:
        """Take one of the lines of this cause; a line that is not allowed is the caller's to log later."""
        window = self._window(cause, now)
        if window.lines >= LINES:
            return False
        window.lines += 1
        return True

    def flush(self, now: float) -> None:
        """End the windows that are over, each with a line if it has omitted any. Call this every second."""
        for cause, window in list(self._windows.items()):
            if now - window.start >= WINDOW_SECONDS:
                self._end(cause, window)

    def _window(self, cause: str, now: float) -> "_Window":
        window = self._windows.get(cause)
        if window is not None and now - window.start >= WINDOW_SECONDS:
            self._end(cause, window)
            window = None
        if window is None:
            while len(self._windows) >= CAUSES_AT_MOST:
                oldest = next(iter(self._windows))
                self._end(oldest, self._windows[oldest])
            window = self._windows[cause] = _Window(now)
        return window

    def _end(self, cause: str, window: "_Window") -> None:
        del self._windows[cause]
        omitted = window.lines - LINES
        if omitted > 0:
            self._log.warning("%s: omitted %d similar log lines: %s", self._name, omitted, cause)


class _Window:
    def __init__(self, start: float) -> None:
        self.start: Final = start
        self.lines = 0
