"""The pipeline's daemon of Python workers, of which the CPU time is counted.

Spark's daemon ignores SIGCHLD, so Linux discards the CPU time of workers when they end. Here, a worker that
has ended stays until the daemon ends, and bench.pipeline.counted waits for it.
"""

import signal

from pyspark import daemon

from pipeline.spark import python_daemon


def main() -> None:
    """Fork workers until Spark ends."""
    daemon.SIGCHLD = signal.SIGURG  # type: ignore[attr-defined]  # a signal that nothing sends
    python_daemon.main()


if __name__ == "__main__":
    main()
