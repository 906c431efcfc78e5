"""The keys for TLS, logins and principals: paths, and keys that contradict each other."""

from pathlib import Path

import pytest

from proxy.errors import spell
from tests.support.process.settings import read, rejection

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


def test_paths_are_relative_to_the_folder_of_the_file(tmp_path: Path) -> None:
    settings = read(tmp_path, SECURED)
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
    settings = read(tmp_path, SECURED)
    assert [each.asks for each in settings.listeners] == [True, True, True]
    assert [each.known_to_brokers for each in settings.listeners] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (listener("principal: {from: tls}", UPSTREAM), "listeners[0].principal.from"),
        (listener("principal: {from: tls}", TLS, UPSTREAM), "listeners[0].principal.from"),
        (
            listener("principal: {from: tls, rules: 'RULE:(/x/'}", CLIENTS, UPSTREAM),
            "listeners[0].principal.rules",
        ),
        (
            listener("principal: {from: sasl, rules: 'RULE:x/y/'}", UPSTREAM),
            "listeners[0].principal.rules",
        ),
        (listener("principal: {}", UPSTREAM), "listeners[0].principal.from"),
        (listener("principal: {from: dns}", UPSTREAM), "listeners[0].principal.from"),
        (listener(TLS.replace("}", ", client_auth: required}"), UPSTREAM), "listeners[0].tls.client_ca"),
        (listener(TLS.replace("}", ", client_ca: c}"), UPSTREAM), "listeners[0].tls.client_auth"),
        (listener(SNI, UPSTREAM), "listeners[0].sni"),
        (listener(SNI.replace("$(node_id)", "x"), TLS, UPSTREAM), "listeners[0].sni.broker_host"),
        (
            listener("upstream: {bootstrap: ['k:1'], tls: {key: k}}"),
            "listeners[0].upstream.tls.certificate",
        ),
        (
            listener("upstream: {bootstrap: ['k:1'], sasl: {mechanism: PLAIN, password_env: X}}"),
            "listeners[0].upstream.sasl.username",
        ),
        (
            listener("upstream: {bootstrap: ['k:1'], sasl: {mechanism: PLAIN, username: u}}"),
            "listeners[0].upstream.sasl.password_file",
        ),
        (
            listener("upstream: {bootstrap: ['k:1'], sasl: {mechanism: OAUTHBEARER}}"),
            "listeners[0].upstream.sasl.token_file",
        ),
        (
            listener("principal: {from: sasl, brokers: [kafka]}", UPSTREAM),
            "listeners[0].principal.brokers",
        ),
        (
            listener("replication: true, principal: {from: sasl}", "upstream: {brokers: {1: 'k:1'}}"),
            "listeners[0].principal.brokers",
        ),
        (
            listener("replication: true", TLS, SNI, "upstream: {brokers: {1: 'k:1'}}"),
            "listeners[0].sni",
        ),
        (listener("principal: {from: sasl}", UPSTREAM), "quotas.store"),
        (listener(UPSTREAM) + "\nadmin: {bind: 0.0.0.0}", "admin.bind"),
        (listener(UPSTREAM) + "\nadmin: {token_file: a, token_env: B}", "admin.token_file"),
    ],
)
def test_contradiction_is_rejected_by_its_key(tmp_path: Path, text: str, key: str) -> None:
    assert spell(rejection(tmp_path, text).key) == key


@pytest.mark.parametrize("admin", ["token_env: X", f"{CLIENTS}"])
def test_admin_port_on_a_network_is_accepted_with_credentials(tmp_path: Path, admin: str) -> None:
    text = listener(UPSTREAM) + "\nadmin: {bind: 0.0.0.0, " + admin + "}"
    assert read(tmp_path, text).admin.bind == "0.0.0.0"


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("proxy_protocol: {}", "senders"),
        ("proxy_protocol: {senders: []}", "senders"),
        ("proxy_protocol: {senders: [lb.example.com]}", "senders[0]"),
        ("proxy_protocol: {senders: [10.0.0.0/8, 10.0.0.1/8]}", "senders[1]"),
        ("proxy_protocol: {senders: [0.0.0.0/0]}", "senders[0]"),
        ("proxy_protocol: {senders: ['::/0']}", "senders[0]"),
        ("proxy_protocol: {senders: [10.0.0.0/8], others: trust}", "others"),
    ],
)
def test_senders_of_proxy_headers_are_known(tmp_path: Path, keys: str, key: str) -> None:
    assert spell(rejection(tmp_path, listener(keys, UPSTREAM)).key) == f"listeners[0].proxy_protocol.{key}"


def test_brokers_send_no_proxy_header(tmp_path: Path) -> None:
    text = """
    listeners:
      - {upstream: {bootstrap: ['k:9092']}}
      - {name: r, replication: true, bind: 127.0.0.2, broker_port_base: 29200,
         proxy_protocol: {senders: [10.0.0.1]}, upstream: {brokers: {1: 'k:9092'}}}
    """
    assert spell(rejection(tmp_path, text).key) == "listeners[1].proxy_protocol"


def test_addresses_and_networks_may_send_proxy_headers(tmp_path: Path) -> None:
    text = listener("proxy_protocol: {senders: [10.0.0.1, 'fd00::/8'], others: accept}", UPSTREAM)
    found = read(tmp_path, text).listeners[0].proxy_protocol
    assert found is not None
    assert found.senders == ("10.0.0.1", "fd00::/8")
