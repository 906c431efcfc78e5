"""Usage events for tests: a base event, of which a test changes some fields."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

HOUR_MS: Final = 3_600_000
START_MS: Final = 1_767_182_400_000
"""2025-12-31T12:00:00Z."""
_BASE: Final[Mapping[str, Any]] = {
    "v": 1,
    "cluster": "local",
    "proxy": "proxy-1",
    "broker": 1,
    "listener": "clients",
    "interval_start_ms": START_MS,
    "interval_ms": 10_000,
    "user": "alice",
    "client_id": "billing",
    "api": "Produce",
    "topic": "orders",
    "partition": 0,
    "requests": 10,
    "bytes_in": 1000,
    "bytes_out": 100,
    "throttled_requests": 0,
    "throttle_ms": 0,
    "rejected_requests": 0,
    "rejected_bytes": 0,
    "quota": None,
}


def make_event(**values: object) -> dict[str, Any]:
    """Make an event with these values; `at` is its interval's start in ms after START_MS."""
    at = values.pop("at", None)
    event = {**_BASE, **values}
    if isinstance(at, int):
        event["interval_start_ms"] = START_MS + at
    unknown = event.keys() - _BASE.keys()
    assert not unknown, unknown
    return event


def write_lines(file: Path, events: Iterable[Mapping[str, Any] | str]) -> Path:
    """Write a file of JSON lines; a text is written as it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def counts(output: str, told: str) -> list[int]:
    """The first number of each line of a job's output that has the text `told`."""
    lines = [line for line in output.splitlines() if told in line]
    found = [re.search(r"(?:^|\s)(\d[\d,]*)\s", line) for line in lines]
    return [int(match[1].replace(",", "")) for match in found if match]
