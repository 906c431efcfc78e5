"""`quota-proxy run`: from the file to the process."""

import signal
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import proxy
from proxy.cli import serve as module
from proxy.config.load import load
from proxy.demo.ports import free_port_range
from proxy.errors import SettingsError
from proxy.quota.quota import QuotaKind
from proxy.server import app
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.store.from_settings import Configuration
from proxy.telemetry import log

SMALLEST = "listeners: [{upstream: {bootstrap: ['127.0.0.1:19092']}}]\n"


@pytest.fixture(autouse=True)
def hangup() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The levels that the log was set up with, in place of doing it."""
    levels: list[str] = []
    monkeypatch.setattr(log, "set_up", lambda level, process, form: levels.append(f"{level} {form}"))
    return levels


def test_the_process_serves_the_settings_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, levels: list[str]
) -> None:
    file = tmp_path / "proxy.yaml"
    port = free_port_range(12)
    keys = f"{{bootstrap_port: {port}, broker_port_base: {port + 2}, up"
    file.write_text(SMALLEST.replace("{up", keys) + "log: {format: json}\n")

    def build(
        configuration: Configuration, kinds: Sequence[QuotaKind], path: Path, early: EarlyPorts
    ) -> tuple[object, Path]:
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        bootstrap = early.take("127.0.0.1", port)
        assert bootstrap is not None
        with bootstrap, socket.create_connection(("127.0.0.1", port)):
            early.close()
        return configuration.settings, path

    built: list[object] = []

    def run(process: object) -> int:
        built.append(process)
        return 3

    monkeypatch.setattr(app, "build", build)
    monkeypatch.setattr(app, "run", run)
    assert module.serve(file, "debug") == 3
    assert built == [(load(file), file)]
    assert levels == ["debug json"]


def test_the_log_begins_with_the_version_the_build_and_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, levels: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "proxy.yaml").write_text(
        SMALLEST.replace("{up", f"{{bootstrap_port: {free_port_range(1)}, up")
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(EarlyPorts, "open", lambda *_: None)
    monkeypatch.setattr(app, "build", lambda *_: None)
    monkeypatch.setattr(app, "run", lambda _: 0)
    with caplog.at_level("INFO"):
        module.serve(Path("proxy.yaml"), "info")
    [record] = caplog.records
    version, build, _, path = record.args if isinstance(record.args, tuple) else ()
    assert (version, path) == (proxy.__version__, tmp_path / "proxy.yaml")
    assert build == ("compiled" if proxy.COMPILED else "interpreted")


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(SMALLEST + "admin: {port: abc}\n")
    with pytest.raises(SettingsError, match=r"admin\.port"):
        module.serve(file, "info")
