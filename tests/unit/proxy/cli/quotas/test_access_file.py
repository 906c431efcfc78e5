"""--access: a file with TLS and login, as in the proxy's own configuration."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.cli.main import main
from proxy.cli.quotas.access_file import read_access
from proxy.errors import SettingsError
from tests.support.process.certificates import Authority

SASL = "sasl: {mechanism: SCRAM-SHA-512, username: admin, password_file: password}\n"


def write(folder: Path, text: str) -> Path:
    (folder / "password").write_text("s3cret\n")
    file = folder / "access.yaml"
    file.write_text(text)
    return file


def test_a_file(tmp_path: Path) -> None:
    Authority(tmp_path)
    access = read_access(write(tmp_path, "tls: {ca: ca.pem}\n" + SASL))
    given = access.for_aiokafka()
    assert (given["security_protocol"], given["sasl_plain_password"]) == ("SASL_SSL", "s3cret")


def test_an_empty_file_is_plaintext(tmp_path: Path) -> None:
    assert read_access(write(tmp_path, "")).for_aiokafka()["security_protocol"] == "PLAINTEXT"


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("tls: {ca: no.pem}", 1, ("tls", "ca")),
        ("\nsasl: {mechanism: PLAIN}", 2, ("sasl", "username")),
        ("user: admin", 1, ("user",)),
    ],
)
def test_mistake_in_the_file_is_rejected_by_its_key(
    tmp_path: Path, text: str, line: int, key: tuple[str, ...]
) -> None:
    with pytest.raises(SettingsError) as caught:
        read_access(write(tmp_path, text))
    assert (caught.value.line, caught.value.key) == (line, key)


def test_command_shows_the_mistake_and_exits_2(tmp_path: Path) -> None:
    file = write(tmp_path, "user: admin")
    done = CliRunner().invoke(main, ["quotas", "list", "--bootstrap", "localhost:1", "--access", str(file)])
    assert done.exit_code == 2
    assert f"{file}:1: user: " in done.output
