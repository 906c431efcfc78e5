"""Advertised addresses: what clients are told, and what a file may not say."""

from pathlib import Path

import pytest

from proxy.config.advertised import advertised_address
from proxy.config.settings import Listener, Upstream
from proxy.errors import KeyPath
from tests.support.process.settings import read, rejected_key

UPSTREAM = Upstream(bootstrap=("k:9092",))
FILE = "listeners: [{{advertised_host: h, {keys}, upstream: {{bootstrap: ['k:9092']}}}}]"
SNI = (
    "tls: {{certificate: c, key: k}}, "
    "sni: {{port: 29443, bootstrap_host: b, broker_host: 'b-$(node_id)'{more}}}"
).format


def test_a_broker_is_advertised_where_it_is_served_by_default() -> None:
    listener = Listener(advertised_host="h", upstream=UPSTREAM)
    assert advertised_address(listener, 2, 29102) == ("h", 29102)


def test_a_base_replaces_the_port() -> None:
    listener = Listener(advertised_host="h", advertised_broker_port_base=39100, upstream=UPSTREAM)
    assert advertised_address(listener, 2, 29102) == ("h", 39102)


def test_a_broker_of_its_own_replaces_host_and_port() -> None:
    listener = Listener(
        advertised_host="h",
        advertised_broker_port_base=39100,
        advertised_brokers={2: "[fd00::1]:9094"},
        upstream=UPSTREAM,
    )
    assert advertised_address(listener, 2, 29102) == ("fd00::1", 9094)
    assert advertised_address(listener, 3, 29103) == ("h", 39103)


@pytest.mark.parametrize(
    "keys",
    [
        "advertised_broker_port_base: 39100",
        "advertised_broker_port_base: 65535, broker_port_count: 1",
        "advertised_broker_port_base: 29092",
        "advertised_brokers: {1: 'a:9092', 2: 'b:9092'}",
        "advertised_brokers: {0: 'h:29101', 1: 'h:29100'}",
        "advertised_brokers: {1: 'a:29100'}",
        SNI(more=", advertised_port: 443"),
    ],
)
def test_accepted(tmp_path: Path, keys: str) -> None:
    read(tmp_path, FILE.format(keys=keys))


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("advertised_broker_port_base: 0", ("advertised_broker_port_base",)),
        ("advertised_broker_port_base: 65536", ("advertised_broker_port_base",)),
        ("advertised_broker_port_base: 65530, broker_port_count: 7", ("advertised_broker_port_base",)),
        ("advertised_broker_port_base: 39100, broker_port_base: 0", ("advertised_broker_port_base",)),
        ("advertised_brokers: {1: 'a:1'}, broker_port_base: 0", ("advertised_brokers",)),
        ("advertised_brokers: {1: 'a'}", ("advertised_brokers", "1")),
        ("advertised_brokers: {1: 'a:0'}", ("advertised_brokers", "1")),
        ("advertised_brokers: {1: '0.0.0.0:9092'}", ("advertised_brokers", "1")),
        ("advertised_brokers: {3: 'a:1'}, broker_port_count: 3", ("advertised_brokers", "3")),
        ("advertised_brokers: {1: 'a:1', 2: 'a:1'}", ("advertised_brokers", "2")),
        ("advertised_brokers: {1: 'h:29105'}", ("advertised_brokers", "1")),
        (
            "advertised_brokers: {1: 'h:39105'}, advertised_broker_port_base: 39100",
            ("advertised_brokers", "1"),
        ),
        (
            "advertised_broker_port_base: 39100, " + SNI(more=""),
            ("advertised_broker_port_base",),
        ),
        (SNI(more=", advertised_port: 0"), ("sni", "advertised_port")),
    ],
)
def test_rejected(tmp_path: Path, keys: str, key: KeyPath) -> None:
    assert rejected_key(tmp_path, FILE.format(keys=keys)) == ("listeners", 0, *key)


def test_a_replication_listener_advertises_nothing(tmp_path: Path) -> None:
    text = """
    listeners:
      - {upstream: {bootstrap: ['k:9092']}}
      - {name: r, replication: true, bind: 127.0.0.2, advertised_broker_port_base: 39200,
         upstream: {brokers: {1: 'k:9092'}}}
    """
    assert rejected_key(tmp_path, text) == ("listeners", 1, "advertised_broker_port_base")
