"""The process of `quota-pipeline`: its end, also by a signal."""

import atexit
import logging
import os
import signal
import sys
from types import FrameType
from typing import Final

_STOPS: Final = (signal.SIGINT, signal.SIGTERM)
_OF_SIGNALS: Final = 128
"""Shells add it to the number of the signal that ended a command."""


class Process:
    """Runs the command, and ends without freeing each object, which would take a quarter of a second."""

    def __init__(self) -> None:
        self._code = 1
        """The exit code. Python prints the traceback of an error that is not a SystemExit."""
        self._stopped: int | None = None
        """The signal that ends the command."""

    def run(self) -> None:
        """Run the command; SIGINT and SIGTERM end it after it has stopped Spark and removed what it has begun
        to write.
        """
        # The first function is called last: after those of libraries, which are imported below.
        atexit.register(self._leave)
        for number in _STOPS:
            # A shell has its background commands ignore SIGINT.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)
        # py4j would print the traceback of an interrupted call.
        logging.getLogger().addHandler(logging.NullHandler())
        from pipeline.cli.main import main

        try:
            main()
        except SystemExit as ended:
            self._code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            raise

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopped = number
        raise KeyboardInterrupt

    def _leave(self) -> None:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            # Python says so, and exits with a code of its own.
            return
        os._exit(self._code if self._stopped is None else _OF_SIGNALS + self._stopped)


def run() -> None:
    """Run the command."""
    Process().run()


if __name__ == "__main__":
    run()
