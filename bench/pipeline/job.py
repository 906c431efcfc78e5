"""Runs one job, and prints its time and memory: `python -m bench.pipeline.job JOB EVENTS OUT QUOTAS PRICES
MEMORY`.
"""

import json
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

from click.testing import CliRunner

from pipeline.cli import main as quota_pipeline
from pipeline.session import make_session


def main() -> None:
    """Run the job in an existing session, so that the start of Spark is not measured."""
    job, source, out, quotas, prices, memory = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    # Spark spills to the disk of the events.
    settings = {"spark.driver.memory": memory, "spark.local.dir": str(Path(out).parent / "spark")}
    spark = make_session(settings=settings)
    options = {
        "chargeback": ["--prices", prices],
        "replay": ["--quotas", quotas],
        "report": ["--quotas", quotas, "--prices", prices],
    }.get(job, [])
    began = time.monotonic()
    result = CliRunner().invoke(quota_pipeline, [job, "--events", source, "--out", out, *options])
    seconds = time.monotonic() - began
    if result.exit_code:
        sys.exit(result.output)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    megabytes = sum(map(_peak, [os.getpid(), *_below(jvm.java.lang.ProcessHandle.current().pid())]))
    spark.stop()
    print(json.dumps({"seconds": seconds, "megabytes": megabytes}))


def _below(pid: int) -> list[int]:
    """The process and its descendants: Spark's JVM and its Python workers."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task").glob("*/children")
        found = [_below(int(child)) for file in children for child in file.read_text().split()]
        return [pid, *(each for below in found for each in below)]
    return []


def _peak(pid: int) -> float:
    """The peak memory of a process in MB; 0 if it has ended."""
    with suppress(OSError, KeyError):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return int(status["VmHWM"].split()[0]) / 1024
    return 0.0


if __name__ == "__main__":
    main()
