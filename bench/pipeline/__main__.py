"""`python -m bench.pipeline [--events 1000000 10000000 50000000] [--jobs usage ...]`: what each job costs.

Events are generated once per size and format, and kept under --folder. Every job is a command of its own,
with the start of Spark. DuckDB and Polars compute the same tables for comparison. The results are merged into
bench/results/pipeline.json, where they replace the results of the same job and size, so that sizes can be
measured in separate runs. A line over all sizes gives the fixed cost of a job and its events per second.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.output.page import RESULTS
from bench.pipeline.cost import MOST_OFF, Result, fit

ROOT: Final = Path(__file__).parent.parent.parent
FILE: Final = RESULTS / "pipeline.json"
Key = tuple[str, str, str, int]
"""Tool, job, format, events."""
JOBS: Final = ("ingest", "usage", "throttle", "chargeback", "recommend", "replay", "report")
PEERS: Final = ("duckdb", "polars")
CHECKED: Final = "duckdb-checked"
"""DuckDB with the checks of the pipeline, which the peers otherwise lack; for Parquet only."""
TOOLS: Final = ("spark", *PEERS, CHECKED)
PEERS_JOBS: Final = ("usage", "throttle", "chargeback")
FORMATS: Final = ("parquet", "json")
QUOTAS: Final = """\
quotas: {clients: [{entity: {user: <default>}, producer_byte_rate: 16000000, consumer_byte_rate: 16000000}]}
"""
PRICES: Final = """\
{currency: EUR, per_gib_in: 0.10, per_gib_out: 0.05, per_million_requests: 0.20, per_partition_hour: 0.001}
"""


def main() -> None:
    """Measure what the options name."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline")
    parser.add_argument(
        "--events",
        type=int,
        nargs="+",
        default=[1_000_000],
        metavar="N",
        help="numbers of events (default: 1000000)",
    )
    parser.add_argument(
        "--jobs", nargs="+", choices=JOBS, default=list(JOBS), help="jobs to measure; default: all"
    )
    parser.add_argument(
        "--tools", nargs="+", choices=TOOLS, default=list(TOOLS), help="tools to measure; default: all"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help="format of the events (default: %(default)s)"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "bench-pipeline",
        help="folder of the events, which are kept (default: %(default)s)",
    )
    parser.add_argument("--memory", default="4g", help="Spark's driver memory (default: %(default)s)")
    options = parser.parse_args()
    console = Console()
    results = _kept()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for size in sorted(options.events):
        with console.status(f"generating {size:,} events"):
            source = generate(size, options.format, options.folder, options.memory)
        for job in options.jobs:
            for tool in options.tools:
                if tool != TOOLS[0] and job not in PEERS_JOBS:
                    continue
                if tool == CHECKED and options.format != FORMATS[0]:
                    continue
                with console.status(f"{job} on {size:,} events with {tool}"):
                    result = _measure(tool, job, size, options.format, source, options.memory)
                console.print(
                    f"{tool} {job}: {size:,} events in {result.seconds:.1f} s, CPU {result.cpu_seconds:.1f} s"
                )
                results[tool, job, options.format, size] = result
                # Keep the results so far, in case a long run is interrupted.
                _keep(results)
    console.print(_table(list(results.values())), _lines(list(results.values())))


def _kept() -> dict[Key, Result]:
    """Read the results of earlier runs, which this one adds to."""
    if not FILE.exists():
        return {}
    found = [Result(**each) for each in json.loads(FILE.read_text())]
    return {(each.tool, each.job, each.form, each.events): each for each in found}


def _keep(results: Mapping[Key, Result]) -> None:
    FILE.write_text(json.dumps([asdict(each) for each in results.values()], indent=2) + "\n")


def generate(size: int, form: str, folder: Path, memory: str) -> Path:
    """Return the folder with this number of events over one day; generate it if it is missing."""
    place = folder / f"{form}-{size}"
    if not (place / "_SUCCESS").exists():
        command = [sys.executable, "-m", "bench.pipeline.generate", "--format", form]
        command += ["--events", str(size), "--hours", "24", "--out", str(place)]
        environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--driver-memory {memory} pyspark-shell"}
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return place


def _measure(tool: str, job: str, size: int, form: str, source: Path, memory: str) -> Result:
    """Run a job with a tool, as a command of its own. Raises SystemExit with its output if it fails."""
    folder = source.parent
    out, quotas, prices = folder / "out", folder / "quotas.yaml", folder / "prices.yaml"
    quotas.write_text(QUOTAS)
    prices.write_text(PRICES)
    if tool != TOOLS[0]:
        name, *checked = tool.split("-")
        command = [f"bench.pipeline.in_{name}", job, str(source), str(out), str(prices), str(folder / name)]
        command += checked
    else:
        command = ["bench.pipeline.job", job, str(source), str(out), str(quotas), str(prices), memory]
    began = time.monotonic()
    counted = [sys.executable, "-m", "bench.pipeline.counted", sys.executable, "-m", *command]
    done = subprocess.run(counted, capture_output=True, text=True, check=False, cwd=ROOT)
    seconds = time.monotonic() - began
    if done.returncode:
        raise SystemExit(
            f"{tool} {job} on {size:,} events failed: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    shutil.rmtree(out)
    said, used = map(json.loads, done.stdout.splitlines()[-2:])
    return Result(
        tool=tool,
        job=job,
        form=form,
        events=size,
        seconds=seconds,
        cpu_seconds=used["cpu_seconds"],
        megabytes=said["megabytes"],
    )


def _table(results: Sequence[Result]) -> Table:
    table = Table("job", "format", "events", "tool", "seconds", "CPU seconds", "events/s", "memory MB")
    for each in sorted(results, key=lambda each: (JOBS.index(each.job), each.form, each.events, each.tool)):
        figures = (
            f"{each.seconds:.1f}",
            f"{each.cpu_seconds:.1f}",
            f"{each.rate:,.0f}",
            f"{each.megabytes:,.0f}",
        )
        table.add_row(each.job, each.form, f"{each.events:,}", each.tool, *figures)
    return table


def _lines(results: Sequence[Result]) -> Table:
    """Return the table of the lines through the sizes of each job: fixed cost, rate, and deviation."""
    table = Table(
        "job", "format", "tool", "fixed seconds", "events/s above", "farthest off", f"within {MOST_OFF:.0%}"
    )
    for job, form, tool in product(JOBS, FORMATS, TOOLS):
        found = [each for each in results if (each.job, each.form, each.tool) == (job, form, tool)]
        line = fit(found)
        if line is None:
            continue
        rate = f"{1 / line.seconds_per_event:,.0f}" if line.seconds_per_event > 0 else "-"
        # A line fits any two sizes.
        linear = "-" if len(found) < 3 else "yes" if line.is_linear else "NO"
        table.add_row(job, form, tool, f"{line.fixed_seconds:.1f}", rate, f"{line.off:.0%}", linear)
    return table


if __name__ == "__main__":
    main()
