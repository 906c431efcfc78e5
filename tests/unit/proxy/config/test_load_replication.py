"""Loading a file with a replication listener: what it requires, and what is rejected."""

from pathlib import Path

import pytest

from tests.support.process.settings import SMALLEST, read, rejected_key

REPLICATION = """
listeners:
  - {{broker_port_count: 20, upstream: {{bootstrap: ['k:9092']}}}}
  - {{name: r, replication: true, broker_port_base: 29200, broker_port_count: 10, upstream: {upstream}}}
"""
BROKERS = "{brokers: {1: 'k:9094'}}"


def test_replication_listener_has_brokers_instead_of_bootstrap(tmp_path: Path) -> None:
    settings = read(tmp_path, REPLICATION.format(upstream="{brokers: {1: 'k:9094', 9: '[::1]:9095'}}"))
    clients, replication = settings.listeners
    assert not clients.replication
    assert replication.upstream.brokers == {1: "k:9094", 9: "[::1]:9095"}
    assert settings.client_listeners == (clients,)


@pytest.mark.parametrize(
    ("upstream", "key"),
    [
        ("{bootstrap: ['k:9092']}", ("bootstrap",)),
        ("{}", ("brokers",)),
        ("{brokers: {-1: 'k:9094'}}", ("brokers",)),
        ("{brokers: {1: 'k:9094'}, hosts: [k]}", ("hosts",)),
        ("{brokers: {1: k}}", ("brokers", "1")),
        ("{brokers: {10: 'k:1'}}", ("brokers", "10")),  # past broker_port_count
        ("{brokers: {1: '127.0.0.1:29201'}}", ("brokers", "1")),  # the proxy itself
    ],
)
def test_upstream_of_a_replication_listener(tmp_path: Path, upstream: str, key: tuple[str, ...]) -> None:
    text = REPLICATION.format(upstream=upstream)
    assert rejected_key(tmp_path, text) == ("listeners", 1, "upstream", *key)


def test_client_listener_takes_no_brokers(tmp_path: Path) -> None:
    text = "listeners: [{upstream: {bootstrap: ['k:9092'], brokers: {1: 'k:1'}}}]"
    assert rejected_key(tmp_path, text) == ("listeners", 0, "upstream", "brokers")


def test_replication_listener_requires_a_client_listener(tmp_path: Path) -> None:
    text = "listeners: [{replication: true, upstream: {brokers: {1: 'k:1'}}}]"
    assert rejected_key(tmp_path, text) == ("listeners",)


def test_replication_listener_requires_a_listener_through_which_the_proxy_can_ask(tmp_path: Path) -> None:
    text = REPLICATION.format(upstream=BROKERS)
    text = text.replace("{broker_port_count: 20", "{principal: {from: sasl}, broker_port_count: 20")
    assert rejected_key(tmp_path, text) == ("listeners",)


@pytest.mark.parametrize("enforce", ["proxy", "both"])
def test_enforcement_by_the_proxy_requires_a_replication_listener(tmp_path: Path, enforce: str) -> None:
    quotas = f"quotas: {{replication: {{enforce: {enforce}}}}}"
    assert rejected_key(tmp_path, SMALLEST + quotas) == ("quotas", "replication", "enforce")
    read(tmp_path, REPLICATION.format(upstream=BROKERS) + quotas)
