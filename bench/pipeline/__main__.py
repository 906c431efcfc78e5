"""`python -m bench.pipeline [--events 1000000 10000000 50000000]`: what each job costs, in events per second.

Events are generated once for each size, as Parquet, and kept under --folder. Every job runs in a session of
its own, as users run it; the time is that of the job without Spark's start. Beside it, pandas on the same
work, as long as it has the memory. Everything goes to bench/results/pipeline.json as well.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).parent.parent.parent
RESULTS: Final = ROOT / "bench" / "results"
JOBS: Final = ("ingest", "usage", "throttle", "chargeback", "recommend", "replay", "report")
TOOLS: Final = ("spark", "pandas")
PANDAS_JOBS: Final = ("usage", "throttle", "chargeback")
PANDAS_AT_MOST: Final = 20_000_000
QUOTAS: Final = """\
quotas: {clients: [{entity: {user: <default>}, producer_byte_rate: 16000000, consumer_byte_rate: 16000000}]}
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One job on so many events. `megabytes`: the most memory that its processes had."""

    tool: str
    job: str
    events: int
    seconds: float
    megabytes: float

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds


def main() -> None:
    """Measures what the options name."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline")
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bench-pipeline")
    parser.add_argument("--memory", default="4g", help="Spark's driver memory.")
    options = parser.parse_args()
    console = Console()
    results: list[Result] = []
    RESULTS.mkdir(parents=True, exist_ok=True)
    for size in sorted(options.events):
        source = generate(size, options.folder, options.memory)
        for job in options.jobs:
            for tool in TOOLS:
                if tool == "pandas" and (job not in PANDAS_JOBS or size > PANDAS_AT_MOST):
                    continue
                with console.status(f"{job} on {size:,} events with {tool}"):
                    results.append(_measure(tool, job, size, source, options.folder, options.memory))
                # A long run that is broken off has something to show for it.
                (RESULTS / "pipeline.json").write_text(
                    json.dumps([asdict(each) for each in results], indent=2) + "\n"
                )
    console.print(_table(results))


def generate(size: int, folder: Path, memory: str) -> Path:
    """The folder of so many events, a day of them; made where it is missing."""
    place = folder / f"events-{size}"
    if not (place / "_SUCCESS").exists():
        command = [sys.executable, "-m", "bench.pipeline.generate", "--format", "parquet"]
        command += ["--events", str(size), "--hours", "24", "--out", str(place)]
        environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--driver-memory {memory} pyspark-shell"}
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return place


def _measure(tool: str, job: str, size: int, source: Path, folder: Path, memory: str) -> Result:
    out = folder / "out"
    quotas, prices = folder / "quotas.yaml", ROOT / "config" / "pipeline" / "prices.yaml"
    quotas.write_text(QUOTAS)
    module = "bench.pipeline.job" if tool == "spark" else "bench.pipeline.in_pandas"
    command = [sys.executable, "-m", module, job, str(source), str(out), str(quotas), str(prices), memory]
    before = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{tool} {job} on {size:,} events failed: {done.stderr[-2000:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    assert said["seconds"] <= time.monotonic() - before
    return Result(tool, job, size, said["seconds"], said.get("megabytes", peak))


def _table(results: Sequence[Result]) -> Table:
    table = Table(
        "job", "events", "tool", "seconds", "events/s", "memory MB", "cost per event, of the smallest"
    )
    smallest: dict[tuple[str, str], float] = {}
    for each in results:
        first = smallest.setdefault((each.tool, each.job), each.seconds / each.events)
        table.add_row(
            each.job,
            f"{each.events:,}",
            each.tool,
            f"{each.seconds:.1f}",
            f"{each.rate:,.0f}",
            f"{each.megabytes:,.0f}",
            f"{each.seconds / each.events / first:.2f}",
        )
    return table


if __name__ == "__main__":
    main()
