"""The log's lines."""

import json
import logging
from collections.abc import Iterator

import pytest

from proxy.telemetry.log import JSON, JsonFormatter, LineFormatter, set_up


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


def test_a_json_line_has_the_same_parts_and_what_the_caller_knows() -> None:
    made = record("client %s gone", "10.0.0.1")
    made.listener, made.client_id, made.user, made.broker, made.other = "clients", 'a"b', "", 3, "ignored"
    assert json.loads(JsonFormatter("worker 1").format(made)) == {
        "time": "1970-01-01T00:00:00.250Z",
        "level": "warning",
        "logger": "proxy.server.app",
        "message": "client 10.0.0.1 gone",
        "process": "worker 1",
        "listener": "clients",
        "client_id": 'a"b',
        "broker": "3",
    }


def test_clients_cannot_forge_json_lines() -> None:
    line = JsonFormatter().format(record("client id %s", 'x\n{"level": "error"}\u2028\ud800'))
    assert "\n" not in line
    assert json.loads(line)["message"] == 'client id x\n{"level": "error"}\u2028\\ud800'


def test_a_traceback_is_part_of_the_json_line() -> None:
    made = record("it failed")
    try:
        raise ValueError("why\nnot")
    except ValueError as error:
        made.exc_info = (ValueError, error, error.__traceback__)
    line = JsonFormatter().format(made)
    assert "\n" not in line
    assert "ValueError: why" in json.loads(line)["exception"]


@pytest.mark.usefixtures("untouched_logging")
def test_the_form_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("info", "", JSON)
    logging.getLogger("proxy.a").info("loud")
    set_up("info")
    logging.getLogger("proxy.a").info("again")
    first, second = capsys.readouterr().err.splitlines()
    assert json.loads(first)["message"] == "loud"
    assert second.endswith("INFO    proxy.a: again")
