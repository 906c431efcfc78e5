"""The command: options that it rejects before Spark starts, and how it says that a job failed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.main import main

CLUSTER = {
    "brokers": [1, 2],
    "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "bytes": 1, "bytes_in_rate": 1}],
    "moves": [{"topic": "t", "partition": 0, "replicas": [2]}],
}


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "-1", "x"])
def test_options_are_finite_numbers(tmp_path: Path, number: str) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(CLUSTER))
    for option in ("--throttle", "--network", "--within"):
        result = CliRunner().invoke(
            main, ["reassign", "--cluster", str(file), "--out", str(tmp_path / "out"), option, number]
        )
        assert (result.exit_code, type(result.exception)) == (2, SystemExit)
        assert option in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_of_files_are_finite(tmp_path: Path, number: float) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(CLUSTER).replace('"bytes_in_rate": 1', f'"bytes_in_rate": .{number}'))
    result = CliRunner().invoke(main, ["reassign", "--cluster", str(file), "--out", str(tmp_path / "out")])
    assert (result.exit_code, type(result.exception)) == (2, SystemExit)
    assert "partitions[0].bytes_in_rate" in result.output


def test_a_command_imports_what_it_needs() -> None:
    """`usage` needs neither Kafka's protocol nor the templates of reports, and pandas only later."""
    names = {"kio", "jinja2", "aiokafka", "pandas"}
    program = f"import pipeline.cli.main, sys; print(*{names} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
