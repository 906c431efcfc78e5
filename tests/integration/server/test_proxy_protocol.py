"""The PROXY protocol before a real Kafka: the address in a load balancer's header is the client's."""

import shutil
import socket
import ssl
import struct
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.children import Children
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.ports import free_port_range
from tests.support.kafka.clients import Confluent
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.tap import ADVERTISED_HOST
from tests.support.kafka.topics import make_topic
from tests.support.messages.client_quotas import alter_request
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.requests import api_versions, metadata
from tests.support.process.certificates import Authority
from tests.support.process.proxy_process import BROKERS, HOST, ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
BALANCER = "127.0.0.9"
"""The address from which HAProxy connects; the tests' own clients connect from 127.0.0.1."""
PORTS = free_port_range(BROKERS + 1)
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
RATE = 1000
ONE_ADDRESS = 10
CONFIGURATION = """\
global
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
"""
V2 = b"\r\n\r\n\x00\r\nQUIT\n"


def v1(source: str) -> bytes:
    return f"PROXY TCP4 {source} 198.51.100.1 40000 9092\r\n".encode()


def v2(source: str, tlvs: bytes = b"") -> bytes:
    addresses = socket.inet_aton(source) * 2 + struct.pack("!HH", 40000, 9092)
    return V2 + struct.pack("!BBH", 0x21, 0x11, len(addresses + tlvs)) + addresses + tlvs


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def names_port() -> int:
    return free_port_range(1)


@pytest.fixture(scope="module")
def proxy(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner, authority: Authority, names_port: int
) -> ProxyProcess:
    own = authority.sign("proxy")
    behind = {"proxy_protocol": {"senders": ["127.0.0.0/24"]}}
    hosts = {"bootstrap_host": "kafka.test", "broker_host": "broker-$(node_id).kafka.test"}
    names = {
        "name": "names",
        "sni": {"port": names_port, "advertised_port": 443, **hosts},
        "tls": {"certificate": own.certificate, "key": own.key},
        "upstream": {"bootstrap": [kafka.bootstrap]},
        **behind,
    }
    return run_proxy(
        kafka.bootstrap,
        [{"entity": {"ip": "<default>"}, "connection_creation_rate": RATE}],
        listener={
            "advertised_host": ADVERTISED_HOST,
            "advertised_broker_port_base": PORTS + 1,
            **behind,
        },
        more_listeners=[names],
        settings={"limits": {"max_connections_per_ip": ONE_ADDRESS, "handshake_seconds": 4}},
    )


def addresses(proxy: ProxyProcess) -> set[str]:
    """The addresses that connections were charged to."""
    return {row["entity"]["ip"] for row in proxy.buckets() if "ip" in row["entity"]}


def closed(proxy: ProxyProcess, reason: str) -> float:
    return proxy.metric("quota_proxy_connections_closed_total", listener="clients", reason=reason)


@pytest.mark.parametrize(
    ("header", "address"),
    [
        (v1("192.0.2.1"), "192.0.2.1"),
        (v2("192.0.2.2"), "192.0.2.2"),
        (v2("192.0.2.3", b"\x04\0\x01x"), "192.0.2.3"),
    ],
)
def test_a_header_together_with_the_first_request(proxy: ProxyProcess, header: bytes, address: str) -> None:
    with RawClient(proxy.broker_port(1), header=header + request_frame(api_versions(), 0, "c")) as client:
        assert client.receive_frame()[4:8] == bytes(4)
        assert client.ask(api_versions()).error_code == ErrorCode.none
    assert address in addresses(proxy)


def test_a_header_in_parts_before_tls_with_a_host_name(
    proxy: ProxyProcess, authority: Authority, names_port: int
) -> None:
    header = v2("192.0.2.10")
    context = ssl.create_default_context(cafile=authority.ca)
    with socket.create_connection((HOST, names_port), timeout=30) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in (header[:5], header[5:20], header[20:]):
            plain.sendall(part)
        with context.wrap_socket(plain, server_hostname="broker-1.kafka.test") as client:
            client.sendall(request_frame(metadata([], version=12), 7, "c"))
            with client.makefile("rb") as responses:
                body = responses.read(int.from_bytes(responses.read(4), "big"))
    assert b"broker-1.kafka.test" + (443).to_bytes(4, "big") in body
    assert "192.0.2.10" in addresses(proxy)


def test_a_stated_loopback_address_gives_no_rights(proxy: ProxyProcess) -> None:
    request = alter_request(([("user", "mallory")], [("producer_byte_rate", 1.0)]))
    with RawClient(proxy.broker_port(1), header=v1(HOST)) as client:
        [entry] = client.ask(request).entries
        assert entry.error_code == ErrorCode.cluster_authorization_failed


def test_addresses_are_limited_each_for_itself(proxy: ProxyProcess) -> None:
    with ExitStack() as stack:
        for _ in range(ONE_ADDRESS):
            client = stack.enter_context(RawClient(proxy.broker_port(1), header=v1("192.0.2.20")))
            client.ask(api_versions())
        with RawClient(proxy.broker_port(1), header=v1("192.0.2.21")) as other:
            other.ask(api_versions())
        with (
            RawClient(proxy.broker_port(1), header=v1("192.0.2.20")) as beyond,
            pytest.raises((EOFError, OSError)),
        ):
            beyond.ask(api_versions())
    wait_until(lambda: proxy.log_lines("192.0.2.20:40000 .*max_connections_per_ip"), "the log's line")


@pytest.mark.parametrize("data", [request_frame(api_versions(), 1, "c"), v1("192.0.2.256"), b"PROXY TCP"])
def test_a_connection_without_a_whole_header_is_closed_and_counted(proxy: ProxyProcess, data: bytes) -> None:
    before = closed(proxy, "proxy_header")
    with socket.create_connection((HOST, proxy.broker_port(1)), timeout=30) as client:
        client.sendall(data)
        with suppress(ConnectionError):
            assert client.recv(100) == b""
    wait_until(lambda: closed(proxy, "proxy_header") == before + 1, "the count")


@pytest.fixture(params=["send-proxy", "send-proxy-v2"])
def balancer(request: pytest.FixtureRequest, proxy: ProxyProcess, tmp_path: Path) -> Iterator[str]:
    """HAProxy at the advertised ports: the bootstrap address."""
    if HAPROXY is None:
        pytest.skip("haproxy is not installed; `apt-get install haproxy` brings it")
    text = CONFIGURATION
    for near, far in ((PORTS, proxy.bootstrap_port), (PORTS + 2, proxy.broker_port(1))):
        text += f"listen p{near}\n    bind {ADVERTISED_HOST}:{near}\n"
        text += f"    server proxy {HOST}:{far} {request.param} source {BALANCER}\n"
    file = tmp_path / "haproxy.cfg"
    file.write_text(text)
    children = Children()
    children.spawn([HAPROXY, "-db", "-f", str(file)])
    try:
        wait_until(lambda: _accepts(PORTS), "HAProxy")
        yield f"{ADVERTISED_HOST}:{PORTS}"
    finally:
        children.kill_all()


def _accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((ADVERTISED_HOST, port)) == 0


def test_clients_behind_haproxy(balancer: str, proxy: ProxyProcess, kafka: EmbeddedKafka) -> None:
    topic = f"proxy-protocol-{uuid.uuid4().hex[:8]}"
    make_topic(kafka, topic)
    Confluent().send(balancer, topic, 50)
    assert len(Confluent().read(balancer, topic, 50)) >= 50
    assert HOST in addresses(proxy)
    assert BALANCER not in addresses(proxy)
