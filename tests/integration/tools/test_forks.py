"""The forks that stand for programs in most tests (tests/support/process/forks.py)."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process import forks
from tests.support.process.proxy_process import COMMAND, ProxyProcess
from tests.support.process.workers import running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere proxies start as programs")
NOBODY = "127.0.0.1:1"
"""Nothing listens there."""
WITHOUT_TOPICS = {"quotas": {"store": "none"}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[forks.Server]:
    server = forks.Server()
    yield server
    server.close()


def start(server: forks.Server, *arguments: str) -> forks.Forked:
    with Path("log").open("ab") as log:
        return server.start(arguments, log)


def test_it_does_what_a_program_does(
    server: forks.Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the current folder, with its output and its exit code."""
    (folder / "inner").mkdir()
    monkeypatch.chdir("inner")
    Path("wrong.yaml").write_text("listeners: 7\n")
    arguments = ["run", "--config", "wrong.yaml"]
    fork = start(server, *arguments)
    program = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert fork.wait(30) == program.returncode == 2
    assert fork.poll() == 2
    assert "wrong.yaml" in program.stderr
    assert Path("log").read_text() == program.stderr


def test_it_has_the_environment_of_its_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        monkeypatch.setenv("FORK_S_TOKEN", f"token-of-the-{name}")
        settings = {**WITHOUT_TOPICS, "admin": {"bind": "0.0.0.0", "token_env": "FORK_S_TOKEN"}}
        proxy = ProxyProcess(folder / name, NOBODY, settings=settings, fork=True)
        try:
            proxy.start()
            assert proxy.get("/api/quotas")[0] == 401
            assert proxy.get("/api/quotas", {"Authorization": f"Bearer token-of-the-{name}"})[0] == 200
        finally:
            proxy.kill()


def test_signals_end_it(folder: Path) -> None:
    proxy = ProxyProcess(folder / "proxy", NOBODY, settings=WITHOUT_TOPICS, fork=True).start()
    with pytest.raises(subprocess.TimeoutExpired):
        proxy.process.wait(0.01)
    assert proxy.process.poll() is None
    assert proxy.stop() == 0
    killed = proxy.start().process
    killed.kill()
    assert killed.wait(30) == -signal.SIGKILL
    killed.send_signal(signal.SIGTERM)  # to nobody


def test_it_ends_with_the_server(server: forks.Server, folder: Path) -> None:
    proxy = ProxyProcess(folder / "proxy", NOBODY, settings=WITHOUT_TOPICS)
    fork = start(server, "run", "--config", str(proxy.config_file))
    server.close()
    assert fork.wait(30) == -signal.SIGKILL
    wait_until(lambda: not running(fork.pid), "the end of the fork")
