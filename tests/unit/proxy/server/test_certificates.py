"""Certificates: days until they expire, and warnings before that."""

from types import SimpleNamespace
from typing import Any

from proxy.server.certificates import SECONDS_OF_DAY, WARN_DAYS, Certificates

NOW = 1_700_000_000.0


def files(problem: str = "", **days: float) -> Any:
    ends = {file: NOW + left * SECONDS_OF_DAY for file, left in days.items()}
    return SimpleNamespace(problem=problem, not_after=ends)


def certificates(*each: Any) -> Certificates:
    return Certificates(each, lambda: NOW)


def test_days_left_of_all_files() -> None:
    found = certificates(files(a=30), None, files(b=WARN_DAYS, c=-1))
    assert found.ends() == {"a": NOW + 30 * 86400, "b": NOW + WARN_DAYS * 86400, "c": NOW - 86400}
    assert found.days_left() == {"a": 30, "b": WARN_DAYS, "c": -1}


def test_a_certificate_that_expires_soon_is_a_warning() -> None:
    [warning] = certificates(files(a=30), files(b=WARN_DAYS - 0.5)).warnings()
    assert warning.startswith("b:")


def test_files_that_could_not_be_reloaded_are_a_warning() -> None:
    assert certificates(files("tls: mismatch", a=30), files(b=30)).warnings() == ["tls: mismatch"]
