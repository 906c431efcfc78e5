"""A new client's principal and broker."""

import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proxy.config.settings import Listener, Upstream
from proxy.security.settings import Principal, Sni, Tls
from proxy.server.listener.client_identification import ClientIdentification, NotServed, login_of
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.ports.sni_hosts import SniHosts
from tests.support.process.certificates import Authority

TLS = Tls(certificate="p.pem", key="p.key")
SNI = Sni(port=1, bootstrap_host="k.test", broker_host="b-$(node_id).k.test")


def listener(**keys: Any) -> Listener:
    return Listener(upstream=Upstream(bootstrap=("k:9092",)), **keys)


def identification(**keys: Any) -> ClientIdentification:
    given = listener(**keys)
    ports: BrokerPorts
    if given.sni is None:
        ports = BrokerPorts(given, range(0), lambda *bound: None)
    else:
        ports = SniHosts(given, given.sni, 1)
        ports.advertised(7, "internal", 9092)
    return ClientIdentification(given, ports)


def client(certificate: bytes | None = None, host: str = "", node_id: int | None = 3) -> Any:
    """A connection with what TLS knows of its client."""
    tls = SimpleNamespace(getpeercert=lambda binary_form: certificate, server_name_asked=host)
    return SimpleNamespace(tls=tls, node_id=node_id)


@pytest.fixture
def alice(tmp_path: Path) -> bytes:
    signed = Authority(tmp_path).sign("alice", "alice", unit="people")
    return ssl.PEM_cert_to_DER_cert(Path(signed.certificate).read_text())


def test_without_a_source_of_principals_everybody_is_anonymous(alice: bytes) -> None:
    assert identification().identify(client(alice)) == ("ANONYMOUS", 3)
    assert identification().identify(cast("Any", SimpleNamespace(tls=None, node_id=4))) == ("ANONYMOUS", 4)


def test_the_principal_of_a_certificate(alice: bytes) -> None:
    named = identification(tls=TLS, principal=Principal(source="tls"))
    assert named.identify(client(alice)) == ("CN=alice,OU=people", 3)
    assert named.identify(client(None)) == ("ANONYMOUS", 3)
    ruled = identification(tls=TLS, principal=Principal(source="tls", rules="RULE:^CN=([^,]+),.*$/$1/U"))
    assert ruled.identify(client(alice)) == ("ALICE", 3)


def test_a_certificate_that_no_rule_matches_is_rejected(alice: bytes) -> None:
    strict = identification(tls=TLS, principal=Principal(source="tls", rules="RULE:^O=(.*)$/$1/"))
    with pytest.raises(NotServed) as caught:
        strict.identify(client(alice))
    assert caught.value.reason == "no_principal"


def test_only_brokers_are_served(alice: bytes) -> None:
    principal = Principal(source="tls", rules="RULE:^CN=([^,]+),.*$/$1/", brokers=("kafka", "alice"))
    assert identification(tls=TLS, principal=principal).identify(client(alice))[0] == "alice"
    principal = Principal(source="tls", brokers=("kafka",))
    with pytest.raises(NotServed) as caught:
        identification(tls=TLS, principal=principal).identify(client(alice))
    assert caught.value.reason == "not_a_broker"


def test_logins_name_clients_later(alice: bytes) -> None:
    principal = Principal(source="sasl", oauth_claim="name", unreadable="unnamed")
    assert identification(principal=principal).identify(client(alice)) == ("ANONYMOUS", 3)
    login = login_of(listener(principal=principal))
    assert login is not None
    assert (login.oauth_claim, login.unreadable) == ("name", "unnamed")
    assert login_of(listener()) is None


def test_the_host_of_the_tls_hello_chooses_the_broker() -> None:
    hosts = identification(tls=TLS, sni=SNI)
    assert hosts.identify(client(host="b-7.k.test", node_id=None)) == ("ANONYMOUS", 7)
    assert hosts.identify(client(host="k.test", node_id=None))[1] is None
    with pytest.raises(NotServed) as caught:
        hosts.identify(client(host="b-8.k.test", node_id=None))
    assert caught.value.reason == "unknown_host"
