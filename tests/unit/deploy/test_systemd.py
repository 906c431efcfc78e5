"""The systemd unit: what systemd itself says of it, and that it fits the command line and the settings."""

import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from proxy.cli.main import OTHER_FILES, main
from proxy.config.settings import ConnectionLimits

UNIT = Path(__file__).parents[3] / "deploy/systemd/quota-proxy.service"


@pytest.fixture(scope="module")
def values() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in UNIT.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found[name].append(value)
    return found


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_takes_the_unit(tmp_path: Path, values: dict[str, list[str]]) -> None:
    """The command is replaced by one that is here: systemd-analyze looks for it."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(values["ExecStart"][0], shutil.which("true") or ""))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert unit.name not in done.stderr
    assert done.returncode == 0, done.stderr


def test_start_is_a_command_of_ours(values: dict[str, list[str]]) -> None:
    program, command, *options = shlex.split(values["ExecStart"][0])
    assert Path(program).name == "quota-proxy"
    context = main.commands[command].make_context(command, options)
    assert context.params["path"] == Path("/etc/quota-proxy/quota-proxy.yaml")


def test_stop_waits_for_the_drain(values: dict[str, list[str]]) -> None:
    assert int(values["TimeoutStopSec"][0]) > ConnectionLimits().drain_seconds


def test_files_suffice_for_the_connections(values: dict[str, list[str]]) -> None:
    assert int(values["LimitNOFILE"][0]) >= 2 * ConnectionLimits().max_connections + OTHER_FILES


def test_wrong_configuration_is_not_retried(values: dict[str, list[str]]) -> None:
    assert (values["Restart"], values["RestartPreventExitStatus"]) == (["on-failure"], ["2"])


def test_service_has_no_rights(values: dict[str, list[str]]) -> None:
    assert values["DynamicUser"] == ["yes"]
    assert values["ProtectSystem"] == ["strict"]
    assert values["CapabilityBoundingSet"] == [""]
