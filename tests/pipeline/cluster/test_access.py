"""TLS and logins of connections to brokers: the same file for this process and for Spark's source."""

from pathlib import Path

import pytest
import yaml

from pipeline.cluster.access import PLAINTEXT, read_access
from pipeline.errors import InputError


def write(folder: Path, **access: object) -> Path:
    file = folder / "access.yaml"
    file.write_text(yaml.safe_dump(access))
    return file


def test_settings_of_javas_client(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / f"{name}.pem").write_text(f"the {name}")
    (tmp_path / "password").write_text('a"b\\c\n')
    tls = {"ca": "ca.pem", "certificate": "certificate.pem", "key": "key.pem", "verify_host_name": False}
    sasl = {"mechanism": "SCRAM-SHA-512", "username": "proxy", "password_file": "password"}
    assert dict(read_access(write(tmp_path, tls=tls, sasl=sasl)).of_java()) == {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "the ca",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.keystore.key": "the key",
        "ssl.endpoint.identification.algorithm": "",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="proxy" password="a\\"b\\\\c";',
    }
    assert PLAINTEXT.of_java() == ()
    assert dict(read_access(write(tmp_path, tls={})).of_java()) == {"security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("access", "place"),
    [
        ({"tls": {"server_name": "kafka"}}, "server_name"),
        ({"tls": {"ca": "absent.pem"}}, "absent.pem"),
        ({"tls": {"key": "a"}}, "certificate"),
        ({"sasl": {"mechanism": "PLAIN"}}, "username"),
        ({"sasl": {"mechanism": "PLAIN", "username": "a", "password_file": "absent"}}, "absent"),
        ({"sasl": {"mechanism": "OAUTHBEARER", "token_file": "a"}}, "--kafka"),
        ({"ssl": {}}, "ssl"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, access: dict[str, object], place: str) -> None:
    with pytest.raises(InputError, match=place):
        read_access(write(tmp_path, **access)).of_java()
