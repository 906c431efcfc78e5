"""The systemd units are valid, and match the command line, the example and the default settings."""

import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from proxy.cli.check import read_configuration
from proxy.cli.main import main
from proxy.config.settings import ConnectionLimits
from proxy.quota.kinds import load_kinds
from proxy.server.system.descriptors import FILES_PER_CONNECTION, OTHER_FILES

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "deploy/systemd/quota-proxy.service"
SOCKETS = UNIT.with_suffix(".socket")


@pytest.fixture(scope="module")
def values() -> dict[str, list[str]]:
    return values_of(UNIT)


def values_of(unit: Path) -> dict[str, list[str]]:
    """The values of each key of a unit."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in unit.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found[name].append(value)
    return found


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path: Path, values: dict[str, list[str]]) -> None:
    """systemd-analyze requires the command to exist, so the test replaces it."""
    units = [tmp_path / UNIT.name, tmp_path / SOCKETS.name]
    program = values["ExecStart"][0].split()[0]
    units[0].write_text(UNIT.read_text().replace(program, shutil.which("true") or ""))
    units[1].write_text(SOCKETS.read_text())
    command = ["systemd-analyze", "verify", *map(str, units)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not [unit for unit in units if unit.name in done.stderr]
    assert done.returncode == 0, done.stderr


def test_start_is_a_valid_command(values: dict[str, list[str]]) -> None:
    program, command, *options = shlex.split(values["ExecStart"][0])
    assert Path(program).name == "quota-proxy"
    context = main.commands[command].make_context(command, options)
    assert context.params["path"] == Path("/etc/quota-proxy/quota-proxy.yaml")


def test_reload_validates_the_file_before_it_sends_the_signal(values: dict[str, list[str]]) -> None:
    check, signal = values["ExecReload"]
    program, command, *options = shlex.split(check)
    _, _, *run_options = shlex.split(values["ExecStart"][0])
    assert (command, options) == ("check", run_options)
    assert program == shlex.split(values["ExecStart"][0])[0]
    assert signal.endswith("kill -HUP $MAINPID")


def test_the_proxy_says_when_it_is_ready(values: dict[str, list[str]]) -> None:
    assert values["Type"] == ["notify"]
    assert "AF_UNIX" in values["RestrictAddressFamilies"][0].split()


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


def test_the_service_can_write_usage_events_to_the_folder_of_the_example(
    values: dict[str, list[str]],
) -> None:
    example = ROOT / "config/examples/usage-events.yaml"
    usage = read_configuration(example, load_kinds()).settings.usage
    assert usage is not None
    files = usage.files
    assert files is not None
    (state,) = values["StateDirectory"]
    assert Path("/var/lib") / state in Path(files.folder).parents


def test_the_sockets_are_those_of_the_example(tmp_path: Path) -> None:
    configuration = tmp_path / "quota-proxy.yaml"
    configuration.write_text((ROOT / "config/quota-proxy.yaml").read_text())
    listener = read_configuration(configuration, load_kinds()).settings.listeners[0]
    host, ports = listener.bind, (listener.bootstrap_port, *range(listener.broker_port_base + 1, 29_104))
    assert values_of(SOCKETS)["ListenStream"] == [f"{host}:{port}" for port in ports]
