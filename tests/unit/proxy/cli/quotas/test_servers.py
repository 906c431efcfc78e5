"""--access: a file with TLS and login, as in the proxy's own configuration."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.cli.main import main
from proxy.cli.quotas.servers import Servers, read_access
from proxy.errors import SettingsError
from proxy.security.access import PLAINTEXT
from tests.support.process.certificates import Authority

SASL = "sasl: {mechanism: SCRAM-SHA-512, username: admin, password_file: password}\n"


def write(folder: Path, text: str) -> Path:
    (folder / "password").write_text("s3cret\n")
    file = folder / "access.yaml"
    file.write_text(text)
    return file


def test_addresses_with_access() -> None:
    servers = Servers([("a", 1), ("b", 2)])
    assert list(servers) == [("a", 1), ("b", 2)]
    assert servers.access is PLAINTEXT


def test_a_file(tmp_path: Path) -> None:
    Authority(tmp_path)
    access = read_access(write(tmp_path, "tls: {ca: ca.pem}\n" + SASL))
    given = access.for_aiokafka()
    assert (given["security_protocol"], given["sasl_plain_password"]) == ("SASL_SSL", "s3cret")


def test_an_empty_file_is_plaintext(tmp_path: Path) -> None:
    assert read_access(write(tmp_path, "")).for_aiokafka()["security_protocol"] == "PLAINTEXT"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tls: {ca: no.pem}", r"access.yaml:1: tls.ca: .*no.pem cannot be read"),
        ("\nsasl: {mechanism: PLAIN}", "access.yaml:2: sasl.username: has to be given for PLAIN"),
        ("user: admin", "access.yaml:1: user: unknown key; expected one of sasl, tls"),
    ],
)
def test_a_file_with_a_mistake(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        read_access(write(tmp_path, text))


def test_the_commands_say_so(tmp_path: Path) -> None:
    file = write(tmp_path, "user: admin")
    done = CliRunner().invoke(main, ["quotas", "list", "--bootstrap", "localhost:1", "--access", str(file)])
    assert done.exit_code == 2
    assert "unknown key" in done.output
