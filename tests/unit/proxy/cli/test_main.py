"""The command line: exit codes, what is printed where, and no traceback for a mistake of the operator's."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import proxy
from proxy.cli.main import main
from proxy.errors import QuotaProxyError

FULL = Path("/dev/full")
SMALLEST = "listeners: [{upstream: {bootstrap: ['127.0.0.1:19092']}}]\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "proxy.yaml"
    path.write_text(SMALLEST)
    return path


def serve_with(monkeypatch: pytest.MonkeyPatch, serve: object) -> None:
    """Replace what `quota-proxy run` calls."""
    monkeypatch.setitem(sys.modules, "proxy.cli.serve", SimpleNamespace(serve=serve))


@pytest.mark.parametrize("code", [0, 1])
def test_run_serves_and_ends_with_the_servers_code(
    monkeypatch: pytest.MonkeyPatch, file: Path, code: int
) -> None:
    served: list[tuple[Path, str]] = []

    def serve(path: Path, log_level: str) -> int:
        served.append((path, log_level))
        return code

    serve_with(monkeypatch, serve)
    result = CliRunner().invoke(main, ["run", "--config", str(file), "--log-level", "debug"])
    assert result.exit_code == code
    assert served == [(file, "debug")]


def test_run_reports_a_failure_in_one_line(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    def serve(path: Path, log_level: str) -> int:
        raise QuotaProxyError("port 29092 is taken")

    serve_with(monkeypatch, serve)
    result = CliRunner().invoke(main, ["run", "--config", str(file)])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "quota-proxy: port 29092 is taken\n")


@pytest.mark.parametrize("command", ["run", "check"])
def test_wrong_configuration_exits_2_with_one_line(command: str, file: Path) -> None:
    file.write_text(SMALLEST + "admin: {port: abc}\n")
    result = CliRunner().invoke(main, [command, "--config", str(file)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"quota-proxy: {file}:2: admin.port: expected an integer, got 'abc'\n"


def test_missing_file_exits_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--config", str(tmp_path / "none.yaml")])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"quota-proxy: {tmp_path / 'none.yaml'}: ")


def test_check_describes(file: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--config", str(file)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "listener  clients: bootstrap 127.0.0.1:29092" in result.stdout


def test_the_system_says_why_a_file_cannot_be_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words name the reason and the user; click's own check would not."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert CliRunner().invoke(main, ["check", "--config", str(file)]).exit_code == 0


def test_version_says_which_build_runs() -> None:
    result = CliRunner().invoke(main, ["version"])
    build = "compiled" if proxy.COMPILED else "interpreted"
    assert result.stdout.startswith(f"quota-proxy {proxy.__version__} (")
    assert result.stdout.endswith(f", {build})\n")


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_full_disk_is_reported_in_one_line() -> None:
    command = [sys.executable, "-m", "proxy", "version"]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    with FULL.open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=environment, text=True, check=False
        )
    assert done.returncode == 1
    assert os.strerror(errno.ENOSPC) in done.stderr
    assert done.stderr.count("\n") == 1


def test_compiled_is_what_the_loaded_rings_are() -> None:
    from proxy.quota.measure import rates

    assert rates.__file__ is not None
    assert proxy.COMPILED is not rates.__file__.endswith(".py")


@pytest.mark.parametrize("name", ["COMPILE", "__path"])
def test_package_has_nothing_else_to_look_up(name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(proxy, name)


def test_demo_ends_with_the_demos_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "proxy.demo.demo", SimpleNamespace(main=lambda keep: 3 + keep))
    assert CliRunner().invoke(main, ["demo"]).exit_code == 3
    assert CliRunner().invoke(main, ["demo", "--keep"]).exit_code == 4


def test_python_m_proxy_is_the_command(file: Path) -> None:
    file.write_text("nonsense\n")
    command = [sys.executable, "-m", "proxy", "check", "--config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"quota-proxy: {file}: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("quota-proxy quo", "quotas"),
        ("quota-proxy quotas im", "import"),
        ("quota-proxy quotas set --top", "--topic"),
    ],
)
def test_shell_completion(words: str, found: str) -> None:
    """As bash calls it, by the lines of docs/quotas-as-code.md."""
    command = words.split()
    environment = {"_QUOTA_PROXY_COMPLETE": "bash_complete", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(command) - 1)
    result = CliRunner().invoke(main, [], prog_name="quota-proxy", env=environment)
    assert f"plain,{found}" in result.stdout.splitlines()


COMPLETIONS = {
    "bash": 'eval "$(_QUOTA_PROXY_COMPLETE=bash_source quota-proxy)"; COMP_WORDS=(quota-proxy quotas im); '
    'COMP_CWORD=2; _quota_proxy_completion quota-proxy; echo "${COMPREPLY[@]}"',
    "fish": "_QUOTA_PROXY_COMPLETE=fish_source quota-proxy | source; complete -C 'quota-proxy quotas im'",
}


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_shells_load_the_completion(shell: str) -> None:
    program, command = shutil.which(shell), Path(sys.executable).with_name("quota-proxy")
    if program is None or not command.exists():
        pytest.skip(f"{shell} or {command} is not installed")
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [program, "-c", COMPLETIONS[shell]], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split()[:1] == ["import"], done.stderr
