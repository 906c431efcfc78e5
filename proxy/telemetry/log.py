"""The log: lines on stderr, such as `2026-01-31T12:00:00.000Z INFO    proxy.server.app: message`, with times
in UTC, or JSON objects with the same parts and more.

Messages contain text from clients (client ids, topic names). Control characters are escaped, so that no
client can forge a line.
"""

import logging
import sys
import time
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error")
TEXT: Final = "text"
JSON: Final = "json"
FIELDS: Final = ("listener", "address", "user", "client_id", "broker", "topic")
"""What a record may be about: attributes that callers set with `extra`, and keys of the JSON object."""
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


class JsonFormatter(logging.Formatter):
    """One JSON object per record: time, level, logger, message, and those of FIELDS that the caller knows.

    A traceback is in `exception`.
    """

    converter = staticmethod(time.gmtime)
    default_time_format = LineFormatter.default_time_format
    default_msec_format = LineFormatter.default_msec_format

    def __init__(self, process: str = "") -> None:
        """`process` is in each object; empty for none."""
        super().__init__()
        self._process: Final = process

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _encodable(record.getMessage()),
        }
        if self._process:
            line["process"] = self._process
        for name in FIELDS:
            value = getattr(record, name, "")
            if value != "":
                line[name] = _encodable(str(value))
        if record.exc_info:
            line["exception"] = _encodable(self.formatException(record.exc_info))
        # Imported here: commands such as `quota-proxy version` set the log up, and need no library.
        import msgspec

        return msgspec.json.encode(line).decode()


def set_up(level: str, process: str = "", form: str = TEXT) -> None:
    """Send records of this level (one of LEVELS) and above to stderr; replaces an earlier set-up.

    `process` names the process in each line, where several write to the same log. `form`: TEXT or JSON.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(process) if form == JSON else LineFormatter(process))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _encodable(text: str) -> str:
    """The text with lone surrogates escaped: a client's bytes can contain them, and UTF-8 cannot."""
    return text.encode(errors="backslashreplace").decode()
