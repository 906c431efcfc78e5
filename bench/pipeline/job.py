"""Runs one job, and prints its memory: `python -m bench.pipeline.job JOB EVENTS OUT QUOTAS PRICES MEMORY`."""

import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from click.testing import CliRunner
from pyspark import SparkContext

from pipeline.cli.main import main as quota_pipeline


def main() -> None:
    """Run the job, and print the memory while its JVM is still alive: it ends with this process."""
    job, source, out, quotas, prices, memory = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    # Spark spills to the disk of the events.
    settings = ["--conf", f"spark.driver.memory={memory}"]
    settings += ["--conf", f"spark.local.dir={Path(out).parent / 'spark'}"]
    settings += ["--conf", "spark.python.daemon.module=bench.pipeline.counted_daemon"]
    options = {
        "chargeback": ["--prices", prices],
        "replay": ["--quotas", quotas],
        "report": ["--quotas", quotas, "--prices", prices],
    }.get(job, [])
    result = CliRunner().invoke(quota_pipeline, [job, "--events", source, "--out", out, *settings, *options])
    if result.exit_code:
        sys.exit(result.output)
    jvm = SparkContext._jvm
    assert jvm is not None
    processes = {os.getpid(), *_below(os.getpid()), *_below(jvm.java.lang.ProcessHandle.current().pid())}
    print(json.dumps({"megabytes": sum(map(_peak, processes))}))


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
