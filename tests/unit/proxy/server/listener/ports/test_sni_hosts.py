import pytest
from msgspec.structs import replace

from proxy.config.settings import Listener, Upstream
from proxy.security.settings import Sni, Tls
from proxy.server.listener.ports.sni_hosts import SniHosts, UnknownHost

SNI = Sni(port=29443, bootstrap_host="kafka.example.com", broker_host="broker-$(node_id).Kafka.example.com")
LISTENER = Listener(
    sni=SNI, tls=Tls(certificate="c", key="k"), upstream=Upstream(bootstrap=("k:9092",)), bind="0.0.0.0"
)


@pytest.fixture
def hosts() -> SniHosts:
    made = SniHosts(LISTENER, SNI, 29443)
    address = made.advertised(7, "internal", 9092)
    assert (address.host, address.port) == ("broker-7.Kafka.example.com", 29443)
    return made


def test_the_host_of_a_broker(hosts: SniHosts) -> None:
    assert hosts.node_behind("broker-7.kafka.example.com") == 7
    assert hosts.node_behind("BROKER-7.KAFKA.EXAMPLE.COM") == 7
    assert hosts.upstream(7) == ("internal", 9092)


def test_the_bootstrap_host_stands_for_any_broker(hosts: SniHosts) -> None:
    assert hosts.node_behind("Kafka.example.com") is None


@pytest.mark.parametrize(
    "name",
    [
        "broker-8.kafka.example.com",
        "broker-07.kafka.example.com",
        "broker-.kafka.example.com",
        "broker-²7.kafka.example.com",
        "other.example.com",
        "",
    ],
)
def test_an_unknown_host_is_named_in_the_error(hosts: SniHosts, name: str) -> None:
    with pytest.raises(UnknownHost) as caught:
        hosts.node_behind(name)
    assert name in str(caught.value)


def test_the_listener_takes_its_addresses_from_sni() -> None:
    assert (LISTENER.bootstrap_port, LISTENER.broker_port_base) == (29443, 0)
    assert LISTENER.advertised_host == "kafka.example.com"


def test_a_load_balancer_s_port_is_advertised() -> None:
    sni = replace(SNI, advertised_port=443)
    address = SniHosts(replace(LISTENER, sni=sni), sni, 29443).advertised(7, "internal", 9092)
    assert (address.host, address.port) == ("broker-7.Kafka.example.com", 443)
