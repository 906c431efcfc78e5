"""One job, timed: `python -m bench.pipeline.job JOB EVENTS OUT QUOTAS PRICES MEMORY`; a line of JSON."""

import json
import shutil
import sys
import time
from pathlib import Path

from click.testing import CliRunner

from pipeline.cli import main as quota_pipeline
from pipeline.session import make_session


def main() -> None:
    """Runs the job in a session that is there already, so that its start does not count."""
    job, source, out, quotas, prices, memory = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    spark = make_session(settings={"spark.driver.memory": memory})
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
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    megabytes = int(status["VmHWM"].split()[0]) / 1024
    spark.stop()
    print(json.dumps({"seconds": seconds, "megabytes": megabytes}))


if __name__ == "__main__":
    main()
