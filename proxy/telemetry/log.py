"""The log: plain lines on stderr, `2026-01-31T12:00:00.000Z INFO  proxy.server.app: message`, times in UTC.

What clients send reaches the log (client ids, topic names); control characters are escaped, so that no client
can write a line of its own into it.
"""

import logging
import sys
import time
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error")
_NOISY: Final = ("aiokafka", "aiohttp.access", "asyncio")
"""Libraries whose INFO is of no use to an operator."""


class LineFormatter(logging.Formatter):
    """One line for a record; a traceback, where there is one, keeps its own lines below."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:
        return "".join(map(_visible, super().formatMessage(record)))


def set_up(level: str) -> None:
    """Sends the log to stderr from this level (one of LEVELS) on; replaces what was set up before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
