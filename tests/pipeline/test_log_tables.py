"""Delta Lake and Apache Iceberg: jobs build a history, and a write that fails changes nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.formats import DELTA, ICEBERG

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("form", [DELTA, ICEBERG])
def test_tables_of_a_lake(tmp_path: Path, form: str) -> None:
    """The first run fetches the package of the format from Maven Central."""
    story = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.log_table_story", form, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert story.returncode == 0, story.stdout[-4000:] + story.stderr[-4000:]
