"""The log: lines on stderr, such as `2026-01-31T12:00:00.000Z INFO    proxy.server.app: message`, with times
in UTC.

Messages contain text from clients (client ids, topic names). Control characters are escaped, so that no
client can forge a line.
"""

import logging
import sys
import time
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error")
_NOISY: Final = ("aiokafka", "aiohttp.access", "asyncio")
"""Libraries whose INFO lines are of no use to an operator."""


class LineFormatter(logging.Formatter):
    """One line per record; a traceback follows in lines of its own."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, process: str = "") -> None:
        """`process` begins each message; empty for none."""
        named = f"{process}: " if process else ""
        super().__init__(f"%(asctime)s %(levelname)-7s %(name)s: {named}%(message)s")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:
        return "".join(map(_visible, super().formatMessage(record)))


def set_up(level: str, process: str = "") -> None:
    """Send records of this level (one of LEVELS) and above to stderr; replaces an earlier set-up.

    `process` names the process in each line, where several write to the same log.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(process))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
