"""The configuration that the benchmark writes is one that the proxy takes."""

import json
from pathlib import Path

import pytest
import yaml

from bench.load.cold import NODE_ID
from bench.peers.peer import Setting, Unavailable, free_ports
from bench.peers.quota_proxy import baseline, configuration, doubts
from tests.support.process.settings import load_settings


def test_the_proxy_takes_it_with_a_quota_for_every_tenant(tmp_path: Path) -> None:
    bootstrap, admin, port = free_ports(3)
    setting = Setting(19092, 1000, tmp_path)
    document = configuration(setting, bootstrap=bootstrap, admin=admin, broker_port_base=port - NODE_ID)
    file = tmp_path / "proxy.yaml"
    file.write_text(yaml.safe_dump(document))
    settings = load_settings(file)
    (listener,) = settings.listeners
    assert listener.broker_port_base + NODE_ID == port
    assert listener.upstream.bootstrap == ("127.0.0.1:19092",)
    assert len(settings.quotas.clients) == 1000
    assert settings.quotas.clients[999]["entity"] == {"client-id": "bench-999"}


def test_no_tenants_no_quotas(tmp_path: Path) -> None:
    document = configuration(Setting(19092, 0, tmp_path), bootstrap=1, admin=2, broker_port_base=3)
    assert document["quotas"] == {"store": "none", "algorithm": "pace", "clients": []}


def test_several_workers(tmp_path: Path) -> None:
    document = configuration(Setting(19092, 0, tmp_path, workers=2), bootstrap=1, admin=2, broker_port_base=3)
    assert document["workers"] == 2


def checkout(folder: Path, version: str) -> Path:
    """A checkout whose `quota-proxy version` prints `version`."""
    command = folder / ".venv/bin/quota-proxy"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{version}'\n")
    command.chmod(0o755)
    return folder


def test_the_baseline_is_the_compiled_build_of_another_checkout(tmp_path: Path) -> None:
    assert baseline(checkout(tmp_path, "quota-proxy 0.1.0 (compiled)")).name == "baseline"


def test_an_interpreted_baseline_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="make compiled"):
        baseline(checkout(tmp_path, "quota-proxy 0.1.0 (interpreted)"))


def test_a_baseline_without_a_build_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="make setup"):
        baseline(tmp_path)


@pytest.mark.parametrize(
    ("client_id", "throttle_seconds", "expected"),
    [
        ("bench-0", 0.0, []),
        ("bench-1", 0.0, ["proxy: no byte quota of bench-0 was checked"]),
        ("bench-0", 0.5, ["proxy: bench-0 was throttled; its quota must be out of reach"]),
    ],
)
def test_unchecked_or_throttling_quotas_make_the_figures_doubtful(
    client_id: str, throttle_seconds: float, expected: list[str]
) -> None:
    bucket = {"entity": {"client-id": client_id}, "throttle_seconds": throttle_seconds}
    assert doubts("proxy", json.dumps({"quotas": [bucket]}).encode()) == expected
