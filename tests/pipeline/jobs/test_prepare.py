"""`prepare` writes the archive in a process of its own, whose Java ends with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from pipeline.errors import PipelineError
from pipeline.jobs.prepare import write_archive
from pipeline.spark import class_archive

# To generate code for a single event takes longer than to run without it.
PREPARE = """
import sys
from pathlib import Path
from click.testing import CliRunner
from pipeline.cli.main import main
from pipeline.spark import class_archive, session
class_archive.FOLDER = Path(sys.argv[1])
session._SQL.update({"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"})
result = CliRunner().invoke(main, ["prepare"])
print(result.output)
sys.exit(result.exit_code)
"""


def test_the_archive_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "share"
    environment = {**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    command = [sys.executable, "-c", PREPARE, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.setattr(class_archive, "FOLDER", folder)
    found = class_archive.find()
    assert found is not None
    assert str(found) in done.stdout
    assert list(folder.iterdir()) == [found]
    assert found.stat().st_size > 50_000_000


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(class_archive, "FOLDER", tmp_path / "file/share")
    with pytest.raises(PipelineError, match="cannot write"):
        write_archive(Console())
