"""The admin port: who may read it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from proxy.config.settings import Admin
from proxy.server.admin_port.http import admin_guard


def request(token: str = "", method: str = "GET") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return SimpleNamespace(method=method, headers=headers)


def test_the_token_of_the_settings_is_read_at_each_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    guard = admin_guard(Admin(bind="0.0.0.0", token_file=str(file)))
    assert not guard.allows(request("first"))
    for token in ("first", "second"):
        file.write_text(token)
        assert guard.allows(request(token))
    assert not guard.allows(request("first"))


def test_without_a_token_the_loopback_may_read_only() -> None:
    guard = admin_guard(Admin())
    assert guard.allows(request())
    assert not guard.allows(request(method="POST"))
