"""Delta Lake and Apache Iceberg: jobs build a history, and a write that fails changes nothing."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_tables_of_a_lake(tmp_path: Path) -> None:
    """The first run fetches the packages of the formats from Maven Central."""
    story = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.log_table_story", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert story.returncode == 0, story.stdout[-4000:] + story.stderr[-4000:]
