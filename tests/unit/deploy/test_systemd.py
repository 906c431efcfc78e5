"""The systemd unit is valid, and matches the command line and the default settings."""

import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from proxy.cli.main import main
from proxy.config.settings import ConnectionLimits
from proxy.server.descriptors import FILES_PER_CONNECTION, OTHER_FILES

UNIT = Path(__file__).parents[3] / "deploy/systemd/quota-proxy.service"


@pytest.fixture(scope="module")
def values() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in UNIT.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found[name].append(value)
    return found


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path, values: dict[str, list[str]]) -> None:
    """systemd-analyze requires the command to exist, so the test replaces it."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(values["ExecStart"][0], shutil.which("true") or ""))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert unit.name not in done.stderr
    assert done.returncode == 0, done.stderr


def test_start_is_a_valid_command(values: dict[str, list[str]]) -> None:
    program, command, *options = shlex.split(values["ExecStart"][0])
    assert Path(program).name == "quota-proxy"
    context = main.commands[command].make_context(command, options)
    assert context.params["path"] == Path("/etc/quota-proxy/quota-proxy.yaml")


def test_stop_waits_for_the_drain(values: dict[str, list[str]]) -> None:
    assert int(values["TimeoutStopSec"][0]) > ConnectionLimits().drain_seconds


def test_file_limit_allows_max_connections(values: dict[str, list[str]]) -> None:
    assert (
        int(values["LimitNOFILE"][0])
        >= FILES_PER_CONNECTION * ConnectionLimits().max_connections + OTHER_FILES
    )


def test_invalid_configuration_is_not_retried(values: dict[str, list[str]]) -> None:
    assert (values["Restart"], values["RestartPreventExitStatus"]) == (["on-failure"], ["2"])


def test_service_is_unprivileged(values: dict[str, list[str]]) -> None:
    assert values["DynamicUser"] == ["yes"]
    assert values["ProtectSystem"] == ["strict"]
    assert values["CapabilityBoundingSet"] == [""]
