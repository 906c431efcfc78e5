"""The process that forks Spark's Python workers, for Spark on one machine (`spark.python.daemon.module`).

Spark's own one costs twice: each task reads the directories of Spark's zip files again, because a worker
invalidates the caches of its imports (0.4 s of CPU time), and each worker imports pandas for itself (2 s).
"""

import zipimport

# Workers inherit them. What a task imports otherwise is looked up when it is imported.
import pandas  # noqa: F401
import pyarrow  # type: ignore[import-untyped]  # noqa: F401
from pyspark import daemon


def keep_directory(_: zipimport.zipimporter) -> None:
    """Keep the directory of a zip file: these files do not change while Spark runs."""


def main() -> None:
    """Fork workers until Spark ends."""
    zipimport.zipimporter.invalidate_caches = keep_directory  # type: ignore[assignment]
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
