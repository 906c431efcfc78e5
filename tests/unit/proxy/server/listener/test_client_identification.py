"""Who a new client is, and which broker it means."""

import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.config.settings import Listener, Upstream
from proxy.security.settings import Principal, Sni, Tls
from proxy.server.listener.bootstrap_router import STAND_IN, BootstrapRouter
from proxy.server.listener.client_identification import ClientIdentification, NotServed
from proxy.server.listener.ports import BrokerPorts
from proxy.server.listener.sni_hosts import SniHosts
from proxy.upstream.refresh import ClusterRefresh
from tests.support.process.certificates import Authority

TLS = Tls(certificate="p.pem", key="p.key")
SNI = Sni(port=1, bootstrap_host="k.test", broker_host="b-$(node_id).k.test")


def reception(**keys: Any) -> ClientIdentification:
    listener = Listener(upstream=Upstream(bootstrap=("k:9092",)), **keys)
    ports: BrokerPorts
    if listener.sni is None:
        ports = BrokerPorts(listener, range(0), lambda *learned: None, lambda *bound: None)
    else:
        ports = SniHosts(listener, listener.sni, lambda *learned: None, lambda: 1)
        ports.advertised(7, "internal", 9092)
    cluster = ClusterRefresh("test", (("k", 9092),), 1.0, lambda view: None)
    return ClientIdentification(listener, ports, BootstrapRouter((("k", 9092),), cluster, ports))


def client(certificate: bytes | None = None, host: str = "", node_id: int | None = 3) -> Any:
    """What a connection over TLS tells."""
    tls = SimpleNamespace(getpeercert=lambda binary_form: certificate, server_name_asked=host)
    return SimpleNamespace(tls=tls, node_id=node_id)


@pytest.fixture
def alice(tmp_path: Path) -> bytes:
    signed = Authority(tmp_path).sign("alice", "alice", unit="people")
    return ssl.PEM_cert_to_DER_cert(Path(signed.certificate).read_text())


def test_nobody_is_named(alice: bytes) -> None:
    assert reception().receive(client(alice)) == ("ANONYMOUS", 3)
    assert reception().receive(SimpleNamespace(tls=None, node_id=4)) == ("ANONYMOUS", 4)


def test_by_the_certificate(alice: bytes) -> None:
    named = reception(tls=TLS, principal=Principal(source="tls"))
    assert named.receive(client(alice)) == ("CN=alice,OU=people", 3)
    assert named.receive(client(None)) == ("ANONYMOUS", 3)
    ruled = reception(tls=TLS, principal=Principal(source="tls", rules="RULE:^CN=([^,]+),.*$/$1/U"))
    assert ruled.receive(client(alice)) == ("ALICE", 3)


def test_a_certificate_to_which_no_rule_applies(alice: bytes) -> None:
    strict = reception(tls=TLS, principal=Principal(source="tls", rules="RULE:^O=(.*)$/$1/"))
    with pytest.raises(NotServed, match="no rule applies to 'CN=alice,OU=people'") as caught:
        strict.receive(client(alice))
    assert caught.value.reason == "no_principal"


def test_only_brokers(alice: bytes) -> None:
    principal = Principal(source="tls", rules="RULE:^CN=([^,]+),.*$/$1/", brokers=("kafka", "alice"))
    assert reception(tls=TLS, principal=principal).receive(client(alice))[0] == "alice"
    principal = Principal(source="tls", brokers=("kafka",))
    with pytest.raises(NotServed, match="CN=alice,OU=people, which is none of") as caught:
        reception(tls=TLS, principal=principal).receive(client(alice))
    assert caught.value.reason == "not_a_broker"


def test_logins_name_later(alice: bytes) -> None:
    by_login = reception(principal=Principal(source="sasl", oauth_claim="name", unreadable="somebody"))
    assert by_login.receive(client(alice)) == ("ANONYMOUS", 3)
    assert by_login.login is not None
    assert (by_login.login.oauth_claim, by_login.login.unreadable) == ("name", "somebody")
    assert reception().login is None


def test_a_broker_by_its_host() -> None:
    hosts = reception(tls=TLS, sni=SNI)
    assert hosts.receive(client(host="b-7.k.test", node_id=None)) == ("ANONYMOUS", 7)
    assert hosts.receive(client(host="k.test", node_id=None))[1] in (7, STAND_IN)
    with pytest.raises(NotServed, match="there is no broker 8") as caught:
        hosts.receive(client(host="b-8.k.test", node_id=None))
    assert caught.value.reason == "unknown_host"
