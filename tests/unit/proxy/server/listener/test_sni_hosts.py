import pytest

from proxy.config.settings import Listener, Upstream
from proxy.security.settings import Sni, Tls
from proxy.server.listener.sni_hosts import SniHosts, UnknownHost

SNI = Sni(port=29443, bootstrap_host="kafka.example.com", broker_host="broker-$(node_id).Kafka.example.com")
LISTENER = Listener(
    sni=SNI, tls=Tls(certificate="c", key="k"), upstream=Upstream(bootstrap=("k:9092",)), bind="0.0.0.0"
)


@pytest.fixture
def hosts() -> SniHosts:
    made = SniHosts(LISTENER, SNI, lambda node_id, host, port: None, lambda: 29443)
    address = made.advertised(7, "internal", 9092)
    assert (address.host, address.port) == ("broker-7.Kafka.example.com", 29443)
    return made


def test_a_broker_behind_a_name(hosts: SniHosts) -> None:
    assert hosts.node_behind("broker-7.kafka.example.com") == 7
    assert hosts.node_behind("BROKER-7.KAFKA.EXAMPLE.COM") == 7
    assert hosts.upstream(7) == ("internal", 9092)


def test_any_broker(hosts: SniHosts) -> None:
    assert hosts.node_behind("Kafka.example.com") is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("broker-8.kafka.example.com", "there is no broker 8"),
        ("broker-07.kafka.example.com", "it asks for 'broker-07"),
        ("broker-.kafka.example.com", "this listener has kafka.example.com and broker-"),
        ("broker-²7.kafka.example.com", "it asks for"),
        ("other.example.com", "it asks for 'other.example.com'"),
        ("", "its TLS hello names no host"),
    ],
)
def test_others_are_told_what_there_is(hosts: SniHosts, name: str, says: str) -> None:
    with pytest.raises(UnknownHost, match=says):
        hosts.node_behind(name)


def test_the_listener_s_own_addresses_follow() -> None:
    assert (LISTENER.bootstrap_port, LISTENER.broker_port_base) == (29443, 0)
    assert LISTENER.advertised_host == "kafka.example.com"
