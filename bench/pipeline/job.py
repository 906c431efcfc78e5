"""Runs one job, and prints its cost: `python -m bench.pipeline.job JOB EVENTS OUT QUOTAS PRICES MEMORY`."""

import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from click.testing import CliRunner
from pyspark import SparkContext

from pipeline.cli.main import main as quota_pipeline

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_TIMES: Final = slice(11, 15)
"""utime, stime, cutime and cstime, behind the name in /proc/PID/stat."""


def main() -> None:
    """Run the job, and print the cost while its JVM is still alive: it ends with this process."""
    job, source, out, quotas, prices, memory = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    # Spark spills to the disk of the events.
    settings = ["--conf", f"spark.driver.memory={memory}"]
    settings += ["--conf", f"spark.local.dir={Path(out).parent / 'spark'}"]
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
    print(json.dumps({"cpu_seconds": sum(map(_cpu, processes)), "megabytes": sum(map(_peak, processes))}))


def _below(pid: int) -> list[int]:
    """The process and its descendants: Spark's JVM and its Python workers."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task").glob("*/children")
        found = [_below(int(child)) for file in children for child in file.read_text().split()]
        return [pid, *(each for below in found for each in below)]
    return []


def _cpu(pid: int) -> float:
    """The CPU seconds of a process, and of its children that have ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[_TIMES])) / _TICKS
    return 0.0


def _peak(pid: int) -> float:
    """The peak memory of a process in MB; 0 if it has ended."""
    with suppress(OSError, KeyError):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return int(status["VmHWM"].split()[0]) / 1024
    return 0.0


if __name__ == "__main__":
    main()
