"""Scenario: a long run with figures and checks."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from proxy.demo.embedded_kafka import EmbeddedKafka

RESULTS: Final = Path(__file__).parents[1] / "results" / "soak"


@dataclass(frozen=True)
class Run:
    """The cluster, the folder and the length of a run."""

    kafka: EmbeddedKafka
    folder: Path
    """The folder of the proxy's configuration and log."""
    short: bool = False
    """Whether the run takes only seconds."""
    scale: float = 1.0
    """The part of the full length that is run, unless the run is short."""

    def amount(self, full: float, short: float) -> int:
        """Return the number, or the seconds, for this length of the run."""
        return round(short) if self.short else max(round(full * self.scale), 1)


@dataclass
class Outcome:
    """The result of a run."""

    figures: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """The checks that failed."""

    def check(self, holds: bool, otherwise: str) -> None:
        """Add a failure unless this holds."""
        if not holds:
            self.failures.append(otherwise)


@dataclass(frozen=True)
class Scenario:
    """One of the scenarios, by name."""

    name: str
    summary: str
    run: Callable[[Run], Outcome]
    brokers: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the brokers, as in server.properties."""


def result_file(name: str, *, short: bool, results: Path = RESULTS) -> Path:
    """The file with the outcome of a scenario."""
    return results / ("short" if short else "") / f"{name}.json"


def has_passed(file: Path) -> bool:
    """Whether the file has the outcome of a run without failures."""
    try:
        return bool(json.loads(file.read_text())["failures"] == [])
    except FileNotFoundError:
        return False


def save(outcome: Outcome, file: Path, **facts: object) -> None:
    """Write the outcome in one step: an existing file is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    text = json.dumps({**facts, "figures": outcome.figures, "failures": outcome.failures}, indent=2)
    unfinished.write_text(text + "\n")
    unfinished.replace(file)
