"""The proxy's process, without a Kafka behind it; tests/integration/tools/test_demo.py has one."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.demo import embedded_proxy
from proxy.demo.embedded_proxy import EmbeddedProxy, ProxyFailed
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.store.from_settings import load_configuration

QUOTAS = [{"entity": {"client-id": "alice"}, "producer_byte_rate": 1000}]
BUCKETS = b'{"quotas": [{"kind": "producer_byte_rate"}]}'


@pytest.fixture
def nobody() -> Iterator[str]:
    """HOST:PORT where a cluster could be, but is not."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_proxy_that_rejects_its_configuration_is_quoted(tmp_path: Path, nobody: str) -> None:
    with (
        pytest.raises(ProxyFailed) as failure,
        EmbeddedProxy(nobody, tmp_path, [{"entity": {"client-id": "alice"}, "speed": 1}]),
    ):
        pass
    ended, _, log = str(failure.value).partition("\n")
    assert " status 2;" in ended
    assert f"{tmp_path}/quota-proxy.log" in ended
    assert "quotas.clients[0].speed" in log


def test_a_proxy_that_is_never_ready_is_stopped_and_quoted(
    tmp_path: Path, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_proxy, "_START_TIMEOUT", 0.0)
    monkeypatch.setattr(EmbeddedProxy, "_get", lambda *_: (503, "no broker responds"))
    proxy = EmbeddedProxy(nobody, tmp_path, QUOTAS)
    with (
        pytest.raises(ProxyFailed, match="no broker responds"),
        proxy,
    ):
        pass
    with pytest.raises(ProxyFailed, match=r" -9\b"):
        proxy.check()


def test_the_configuration_has_the_arguments(
    tmp_path: Path, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedProxy, "_get", lambda *_: (200, ""))
    with EmbeddedProxy(f"{nobody},127.0.0.1:1", tmp_path, QUOTAS) as proxy:
        configuration = load_configuration(proxy.config, load_kinds())
    settings = configuration.settings
    (listener,) = settings.listeners
    assert listener.upstream.bootstrap == (nobody, "127.0.0.1:1")
    assert f"{listener.advertised_host}:{listener.bootstrap_port}" == proxy.bootstrap
    assert settings.admin.port == proxy.admin_port
    lasting = configuration.quotas.layer.lasting
    assert lasting[QuotaEntity(None, "alice")]["producer_byte_rate"] == 1000


def test_pages_of_the_admin_port_are_read(
    tmp_path: Path, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = EmbeddedProxy(nobody, tmp_path, QUOTAS)
    with pytest.raises(ConnectionRefusedError):
        proxy.quotas()
    with socket.create_server(("127.0.0.1", proxy.admin_port)) as server:
        response = threading.Thread(target=_response, args=(server, b"HTTP/1.0 200 OK\r\n\r\n" + BUCKETS))
        response.start()
        assert proxy.quotas() == [{"kind": "producer_byte_rate"}]
        response.join()
        response = threading.Thread(target=_response, args=(server, b"SSH-2.0-server\r\n"))
        response.start()
        with pytest.raises(ConnectionError, match=r"SSH-2\.0-server"):
            proxy.quotas()
        response.join()


def _response(server: socket.socket, says: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(says)
