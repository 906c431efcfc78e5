"""`python -m bench.soak [SCENARIO ...]`: run the scenarios that have not passed yet, one after the other."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.output import machine
from bench.soak import brokers, churn, client_ids, connections, neighbour, restarts, sharing
from bench.soak.limits import raise_open_files
from bench.soak.process import bytecode_kept
from bench.soak.scenario import Run, Scenario, has_passed, result_file, save
from proxy.demo.embedded_kafka import EmbeddedKafka

SCENARIOS: Final = (
    restarts.SCENARIO,
    restarts.AT_PASSED_SOCKETS,
    restarts.HANDOVERS,
    restarts.HANDOVERS_OF_WORKERS,
    restarts.OF_WORKERS,
    *(module.SCENARIO for module in (connections, churn, client_ids, brokers, neighbour, sharing)),
)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak",
        description="Run the proxy for long, under faults and many connections. A scenario that has passed "
        "is skipped, unless it is named.",
        epilog="; ".join(f"{each.name}: {each.summary}" for each in SCENARIOS),
    )
    names = [each.name for each in SCENARIOS]
    parser.add_argument(
        "scenario",
        nargs="*",
        metavar="SCENARIO",
        help=f"{', '.join(names)}; default: those that have not passed yet",
    )
    parser.add_argument(
        "--short", action="store_true", help="run each scenario for seconds, to check that everything runs"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="run this part of the full length, such as 0.2 (default: %(default)s)",
    )
    options = parser.parse_args()
    unknown = set(options.scenario) - set(names)
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    return options


def run_one(scenario: Scenario, *, short: bool, scale: float, file: Path) -> list[str]:
    """Run a scenario on a cluster of its own; return its failures."""
    started = time.monotonic()
    file.parent.mkdir(parents=True, exist_ok=True)
    with (
        _errors_in(file.with_suffix(".log")),
        tempfile.TemporaryDirectory(prefix="soak-") as folder,
        bytecode_kept(Path(folder) / "bytecode"),
        EmbeddedKafka(scenario.brokers, properties=scenario.properties) as kafka,
    ):
        outcome = scenario.run(Run(kafka, Path(folder), short, scale))
    seconds = round(time.monotonic() - started, 1)
    save(outcome, file, scenario=scenario.name, scale=scale, seconds=seconds, machine=machine.facts([]))
    return outcome.failures


@contextmanager
def _errors_in(file: Path) -> Iterator[None]:
    """Redirect standard error to a file: clients report each failed connection attempt there."""
    sys.stderr.flush()
    usual = os.dup(2)
    with file.open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(usual, 2)
        os.close(usual)


def main() -> None:
    """Run the command; exit with 1 if a scenario fails."""
    options = arguments()
    raise_open_files()
    failed = False
    for scenario in SCENARIOS:
        file = result_file(scenario.name, short=options.short)
        if options.scenario and scenario.name not in options.scenario:
            continue
        if not options.scenario and has_passed(file):
            print(f"{scenario.name}: has passed already; {file} has the figures")
            continue
        print(f"{scenario.name}: {scenario.summary}", flush=True)
        failures = run_one(scenario, short=options.short, scale=options.scale, file=file)
        failed = failed or bool(failures)
        for line in (f"{scenario.name}: {file}", *(f"  FAILED: {each}" for each in failures)):
            print(line, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
