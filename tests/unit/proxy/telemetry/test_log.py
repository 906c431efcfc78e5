"""The log's lines."""

import logging
from collections.abc import Iterator

import pytest

from proxy.telemetry.log import LineFormatter, set_up


@pytest.fixture
def untouched_logging() -> Iterator[None]:
    """Whatever a test sets up is gone after it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def record(message: str, *arguments: object) -> logging.LogRecord:
    made = logging.LogRecord("proxy.server.app", logging.WARNING, "", 0, message, arguments, None)
    made.created, made.msecs = 0.25, 250
    return made


def test_line_has_utc_time_level_and_origin() -> None:
    line = LineFormatter().format(record("client %s gone", "10.0.0.1"))
    assert line == "1970-01-01T00:00:00.250Z WARNING proxy.server.app: client 10.0.0.1 gone"


def test_clients_cannot_forge_lines() -> None:
    line = LineFormatter().format(record("client id %s", "x\n1970 ERROR forged\x1b[2J\u2028ü"))
    assert line.endswith("client id x\\n1970 ERROR forged\\x1b[2J\\u2028ü")


@pytest.mark.usefixtures("untouched_logging")
def test_level_and_stream(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("warning")
    logging.getLogger("proxy.a").info("quiet")
    logging.getLogger("proxy.a").warning("loud")
    set_up("info")
    logging.getLogger("proxy.a").info("again")
    logging.getLogger("aiokafka.conn").info("noise")
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(" ")[2] for line in err.splitlines()] == [
        "WARNING proxy.a: loud",
        "INFO    proxy.a: again",
    ]
