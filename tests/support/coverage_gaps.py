"""List the files of which the tests run too few lines.

coverage json -q -o - | python -m tests.support.coverage_gaps
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

LEAST: Final = 80.0
"""Percent of a file's lines. Files below are listed, and nothing fails: some need a real broker."""


def gaps(report: Mapping[str, Any]) -> list[tuple[float, int, str]]:
    """The files below LEAST of coverage.py's JSON report: percent, lines that no test runs, path."""
    found = []
    for path, file in report["files"].items():
        summary = file["summary"]
        if summary["percent_covered"] < LEAST:
            found.append((summary["percent_covered"], summary["missing_lines"], path))
    return sorted(found)


def main() -> None:
    report = json.load(sys.stdin)
    print(f"{report['totals']['percent_covered']:.0f} % of all lines; files below {LEAST:.0f} %:")
    for percent, missing, path in gaps(report):
        print(f"{percent:4.0f} %  {missing:4} lines  {path}")


if __name__ == "__main__":
    main()
