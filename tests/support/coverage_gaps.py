"""List the files of which the tests run too few lines, with the lines that none runs.

coverage json -q -o - | python -m tests.support.coverage_gaps 80
"""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any


def spans(lines: Iterable[int]) -> str:
    """Line numbers, in order, as text: `3-5, 9`."""
    found: list[tuple[int, int]] = []
    for line in lines:
        if found and found[-1][1] == line - 1:
            found[-1] = (found[-1][0], line)
        else:
            found.append((line, line))
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in found)


def gaps(report: Mapping[str, Any], least: float) -> list[tuple[float, str, str]]:
    """The files below `least` percent in coverage.py's report: percent, path, lines that no test runs."""
    return sorted(
        (file["summary"]["percent_covered"], path, spans(file["missing_lines"]))
        for path, file in report["files"].items()
        if file["summary"]["percent_covered"] < least
    )


def main() -> None:
    """Nothing fails: some files need a real broker."""
    report, least = json.load(sys.stdin), float(sys.argv[1])
    print(f"{report['totals']['percent_covered']:.1f} % of all lines; files below {least:g} %:")
    for percent, path, lines in gaps(report, least):
        print(f"{percent:5.1f} %  {path}: {lines}")


if __name__ == "__main__":
    main()
