"""The configuration's keys about TLS, logins and names: what they come to, and what is rejected."""

from pathlib import Path

import pytest

from proxy.config.settings import Settings, load
from proxy.errors import SettingsError
from tests.support.process.certificates import Authority

TLS = "tls: {certificate: p.pem, key: p.key}"
CLIENTS = "tls: {certificate: p.pem, key: p.key, client_ca: ca.pem, client_auth: required}"
UPSTREAM = "upstream: {bootstrap: ['k:9092']}"
SNI = "sni: {port: 29443, bootstrap_host: k.example, broker_host: b-$(node_id).k.example}"
SECURED = """
cluster: secured
listeners:
  - name: clients
    bind: 0.0.0.0
    advertised_host: kafka.example.com
    tls: {certificate: tls/p.pem, key: tls/p.key, client_ca: tls/ca.pem, client_auth: required}
    principal: {from: tls, rules: "RULE:^CN=([^,]+),.*$/$1/,DEFAULT"}
    upstream:
      bootstrap: [kafka-1.internal:9093]
      tls: {ca: tls/brokers.pem, certificate: tls/c.pem, key: tls/c.key}
  - name: sasl
    bind: 0.0.0.0
    advertised_host: kafka.example.com
    bootstrap_port: 29992
    broker_port_base: 30000
    principal: {from: sasl}
    upstream: {bootstrap: [kafka-1.internal:9094], sasl: {mechanism: PLAIN, username: u, password_file: pw}}
  - name: sni
    bind: 0.0.0.0
    sni: {port: 28443, bootstrap_host: kafka.example.com, broker_host: "b-$(node_id).kafka.example.com"}
    tls: {certificate: /elsewhere/p.pem, key: tls/p.key}
    upstream: {bootstrap: [kafka-1.internal:9092]}
admin: {token_file: token}
"""


def listener(*keys: str) -> str:
    return "listeners: [{" + ", ".join(keys) + "}]"


def loaded(folder: Path, text: str, *, with_files: bool = False) -> Settings:
    file = folder / "proxy.yaml"
    file.write_text(text)
    return load(file, with_files=with_files)


def test_files_are_found_from_the_file_s_own_folder_on(tmp_path: Path) -> None:
    settings = loaded(tmp_path, SECURED)
    clients, sasl, sni = settings.listeners
    assert clients.tls is not None
    assert clients.tls.client_ca == str(tmp_path / "tls/ca.pem")
    assert clients.upstream.tls is not None
    assert clients.upstream.tls.key == str(tmp_path / "tls/c.key")
    assert sasl.upstream.sasl is not None
    assert sasl.upstream.sasl.password_file == str(tmp_path / "pw")
    assert sni.tls is not None
    assert sni.tls.certificate == "/elsewhere/p.pem"
    assert settings.admin.token_file == str(tmp_path / "token")


def test_which_listeners_ask_and_where_brokers_know_the_clients(tmp_path: Path) -> None:
    settings = loaded(tmp_path, SECURED)
    assert [each.asks for each in settings.listeners] == [True, True, True]
    assert [each.known_to_brokers for each in settings.listeners] == [False, True, True]
    text = listener("principal: {from: sasl}", UPSTREAM) + "\nquotas: {store: none}"
    assert not loaded(tmp_path, text).listeners[0].asks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (listener("principal: {from: tls}", UPSTREAM), r"principal.from: tls names clients by their cert"),
        (listener("principal: {from: tls}", TLS, UPSTREAM), r"that takes tls.client_ca and tls.client_auth"),
        (listener("principal: {from: tls, rules: 'RULE:(/x/'}", CLIENTS, UPSTREAM), "principal.rules: "),
        (listener("principal: {from: sasl, rules: 'RULE:x/y/'}", UPSTREAM), "rules: means nothing where the"),
        (listener("principal: {}", UPSTREAM), "principal.from: has to be given"),
        (
            listener("principal: {from: dns}", UPSTREAM),
            "principal.from: expected one of sasl, tls",
        ),
        (
            listener(TLS.replace("}", ", client_auth: required}"), UPSTREAM),
            "client_ca: has to be given",
        ),
        (listener(TLS.replace("}", ", client_ca: c}"), UPSTREAM), "client_auth: expected requested or req"),
        (listener(SNI, UPSTREAM), r"listeners\[0\].sni: takes tls"),
        (listener(SNI.replace("$(node_id)", "x"), TLS, UPSTREAM), r"broker_host: expected a host with \$\("),
        (listener("upstream: {bootstrap: ['k:1'], tls: {key: k}}"), "tls.certificate: certificate and key"),
        (
            listener("upstream: {bootstrap: ['k:1'], sasl: {mechanism: PLAIN, password_env: X}}"),
            "sasl.username: has to be given for PLAIN",
        ),
        (
            listener("upstream: {bootstrap: ['k:1'], sasl: {mechanism: PLAIN, username: u}}"),
            "sasl.password_file: expected either password_file or password_env",
        ),
        (
            listener("upstream: {bootstrap: ['k:1'], sasl: {mechanism: OAUTHBEARER}}"),
            "sasl.token_file: has to be given for OAUTHBEARER",
        ),
        (listener("principal: {from: sasl, brokers: [kafka]}", UPSTREAM), "brokers: is for replication lis"),
        (
            listener("replication: true, principal: {from: sasl}", "upstream: {brokers: {1: 'k:1'}}"),
            "principal.brokers: is for replication listeners, and has to be given there",
        ),
        (listener("principal: {from: sasl}", UPSTREAM), "quotas.store: is a topic on a cluster where the"),
        (listener(UPSTREAM) + "\nadmin: {bind: 0.0.0.0}", "admin.bind: 0.0.0.0 is reached from elsewhere"),
        (listener(UPSTREAM) + "\nadmin: {token_file: a, token_env: B}", "expected either token_file or to"),
    ],
)
def test_rejected(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        loaded(tmp_path, text)


@pytest.mark.parametrize("admin", ["token_env: X", f"{CLIENTS}"])
def test_an_admin_port_elsewhere(tmp_path: Path, admin: str) -> None:
    text = listener(UPSTREAM) + "\nadmin: {bind: 0.0.0.0, " + admin + "}"
    assert loaded(tmp_path, text).admin.bind == "0.0.0.0"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (listener(TLS, UPSTREAM), r"listeners\[0\].tls.certificate: .*p.pem cannot be read"),
        (
            listener("upstream: {bootstrap: ['k:1'], tls: {ca: no.pem}}"),
            r"upstream.tls.ca: .*no.pem cannot",
        ),
        (
            listener(
                "upstream: {bootstrap: ['k:1'], sasl: {mechanism: PLAIN, username: u, password_file: pw}}"
            ),
            "upstream.sasl.password_file: .*pw cannot be read",
        ),
        (listener(UPSTREAM) + "\nadmin: {token_env: NO_SUCH_VARIABLE}", "admin.token_env: the environment"),
    ],
)
def test_files_that_are_missing(tmp_path: Path, text: str, says: str) -> None:
    loaded(tmp_path, text)
    with pytest.raises(SettingsError, match=says):
        loaded(tmp_path, text, with_files=True)


def test_files_that_are_there(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.sign("p")
    (tmp_path / "pw").write_text("secret\n")
    sasl = "sasl: {mechanism: PLAIN, username: u, password_file: pw}"
    text = listener(CLIENTS, "upstream: {bootstrap: ['k:1'], tls: {ca: ca.pem}, " + sasl + "}")
    loaded(tmp_path, text, with_files=True)
