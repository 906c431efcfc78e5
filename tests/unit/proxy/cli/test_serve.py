"""`quota-proxy run`: from the file to the process."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from proxy.cli import serve as module
from proxy.config.load import load
from proxy.errors import SettingsError
from proxy.quota.quota import QuotaKind
from proxy.store.from_settings import Configuration
from proxy.telemetry import log

SMALLEST = "listeners: [{upstream: {bootstrap: ['127.0.0.1:19092']}}]\n"


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The levels that the log was set up with, in place of doing it."""
    levels: list[str] = []
    monkeypatch.setattr(log, "set_up", levels.append)
    return levels


def test_the_process_serves_the_settings_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, levels: list[str]
) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(SMALLEST)

    def build(configuration: Configuration, kinds: Sequence[QuotaKind], path: Path) -> tuple[object, Path]:
        return configuration.settings, path

    built: list[object] = []

    def run(proxy: object) -> int:
        built.append(proxy)
        return 3

    monkeypatch.setattr(module, "build", build)
    monkeypatch.setattr(module, "run", run)
    assert module.serve(file, "debug") == 3
    assert built == [(load(file), file)]
    assert levels == ["debug"]


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(SMALLEST + "admin: {port: abc}\n")
    with pytest.raises(SettingsError, match=r"admin\.port"):
        module.serve(file, "info")
