"""Files that the configuration names: those that are missing are rejected by their keys."""

from pathlib import Path

import pytest

from proxy.config.open_files import open_files
from proxy.errors import KeyPath, SettingsError
from tests.support.process.certificates import Authority
from tests.support.process.settings import SMALLEST, read

TLS = "tls: {certificate: p.pem, key: p.key, client_ca: ca.pem, client_auth: required}"
SASL = "sasl: {mechanism: PLAIN, username: u, password_file: pw}"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (
            f"listeners: [{{{TLS}, upstream: {{bootstrap: ['k:1']}}}}]",
            ("listeners", 0, "tls", "certificate"),
        ),
        (
            "listeners: [{upstream: {bootstrap: ['k:1'], tls: {ca: no.pem}}}]",
            ("listeners", 0, "upstream", "tls", "ca"),
        ),
        (
            f"listeners: [{{upstream: {{bootstrap: ['k:1'], {SASL}}}}}]",
            ("listeners", 0, "upstream", "sasl", "password_file"),
        ),
        (SMALLEST + "admin: {token_env: NO_SUCH_VARIABLE}", ("admin", "token_env")),
        (SMALLEST + "admin: {token_file: missing}", ("admin", "token_file")),
        (SMALLEST + f"admin: {{{TLS}}}", ("admin", "tls", "certificate")),
    ],
)
def test_missing_file_is_rejected(tmp_path: Path, text: str, key: KeyPath) -> None:
    settings = read(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        open_files(settings)
    assert caught.value.key == key


def test_present_files_are_accepted(tmp_path: Path) -> None:
    Authority(tmp_path).sign("p")
    (tmp_path / "pw").write_text("secret\n")
    upstream = f"upstream: {{bootstrap: ['k:1'], tls: {{ca: ca.pem}}, {SASL}}}"
    open_files(read(tmp_path, f"listeners: [{{{TLS}, {upstream}}}]\nadmin: {{token_file: pw, {TLS}}}"))
