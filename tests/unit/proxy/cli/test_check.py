"""`check` prints the settings as the proxy takes them."""

from pathlib import Path

import pytest

from proxy.cli.check import describe
from tests.support.process.settings import configuration


def described(tmp_path: Path, text: str) -> list[str]:
    """The lines about the whole file; those about one listener are indented."""
    return [line for line in describe(configuration(tmp_path, text)) if not line.startswith("  ")]


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    assert described(tmp_path, "listeners: [{upstream: {bootstrap: ['k:9092']}}]") == [
        "cluster   kafka",
        "listener  clients: bootstrap 127.0.0.1:29092, brokers at ports 29100 to 65535 for node ids "
        "0 to 36435, advertised as 127.0.0.1, upstream k:9092",
        "admin     127.0.0.1:9644",
        "quotas    algorithm pace, burst of 1 s",
        "store     topic __quota_proxy_config",
        "quota     none in this file",
    ]


def test_callback_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tiers_of_check.py").write_text(
        "from proxy.quota_callback import QuotaCallback\nclass Tiers(QuotaCallback):\n    pass\n"
    )
    text = """
listeners: [{upstream: {bootstrap: ['k:9092']}}]
quotas: {callback: "tiers_of_check:Tiers"}
"""
    assert described(tmp_path, text)[-2:] == [
        "callback  tiers_of_check:Tiers",
        "quota     none in this file",
    ]


@pytest.mark.parametrize(
    ("principal", "user", "warned"),
    [
        ("", "alice", True),
        ("", "<default>", False),
        ("", "ANONYMOUS", False),
        ("principal: {from: sasl}", "alice", False),
    ],
)
def test_quotas_of_users_that_no_client_can_be(
    tmp_path: Path, principal: str, user: str, warned: bool
) -> None:
    text = f"""
listeners:
  - upstream: {{bootstrap: ['k:9092']}}
    {principal}
quotas:
  store: none
  clients:
    - {{entity: {{user: {user}}}, producer_byte_rate: 5}}
    - {{entity: {{user: {user}, client-id: app}}, producer_byte_rate: 5}}
    - {{entity: {{client-id: app}}, producer_byte_rate: 5}}
"""
    lines = [line for line in described(tmp_path, text) if line.startswith("warning")]
    assert len(lines) == warned
    assert all("have no effect: alice;" in line for line in lines)


def test_ipv6_addresses_are_in_brackets(tmp_path: Path) -> None:
    text = "{listeners: [{bind: 'fd00::1', upstream: {bootstrap: ['k:9092']}}], admin: {bind: '::1'}}"
    _, listener, admin, *_ = described(tmp_path, text)
    assert "bootstrap [fd00::1]:29092" in listener
    assert admin == "admin     [::1]:9644"


def test_what_the_file_says(tmp_path: Path) -> None:
    text = """
cluster: local
listeners:
  - {name: a, broker_port_base: 0, bootstrap_port: 0, upstream: {bootstrap: ['k:9092', 'l:9092']}}
  - name: b
    broker_port_count: 1
    advertised_host: h
    upstream: {bootstrap: ['k:9092'], hosts: ['k-*', 10.0.0.0/8]}
quotas:
  algorithm: window
  clients:
    - {entity: {client-id: <default>}, producer_byte_rate: 20971520, consumer_byte_rate: 1}
    - {entity: {client-id: <default>}, producer_byte_rate: 5, expires: 2030-12-31T00:00:00+01:00}
  topics: {orders: {producer.byte.rate: 5, action: reject}}
  brokers: {<default>: {total.bytes.in.per.sec.threshold: 7}}
  store: none
usage: {kafka: {topic: used}, files: {folder: /var/usage, max_bytes: 5000, keep: 2}}
"""
    assert described(tmp_path, text) == [
        "cluster   local",
        "listener  a: bootstrap 127.0.0.1:any free port, brokers at any free port each, "
        "advertised as 127.0.0.1, upstream k:9092, l:9092",
        "listener  b: bootstrap 127.0.0.1:29092, brokers at port 29100 for node id 0, "
        "advertised as h, upstream k:9092, brokers only at k-*, 10.0.0.0/8",
        "admin     127.0.0.1:9644",
        "quotas    algorithm window, 11 samples of 1 s",
        "store     none: changes with tools are rejected",
        "usage     events every 10 s to topic used and files in /var/usage (2 of 5000 bytes)",
        "quota     client-id <default>: producer_byte_rate 20971520, consumer_byte_rate 1",
        "quota     client-id <default>: producer_byte_rate 5 until 2030-12-30T23:00:00+00:00",
        "quota     topic orders: producer.byte.rate 5, producer.byte.rate.action reject",
        "quota     broker <default>: total.bytes.in.per.sec.threshold 7",
    ]


def test_scopes_are_shown(tmp_path: Path) -> None:
    text = """
listeners: [{upstream: {bootstrap: ['k:9092']}}]
quotas:
  scope: cluster
  clients:
    - {entity: {client-id: a}, scope: broker, producer_byte_rate: 5}
    - {entity: {client-id: 'b, user c'}, scope: broker}
"""
    assert described(tmp_path, text)[3:] == [
        "quotas    algorithm pace, burst of 1 s, scope cluster",
        "store     topic __quota_proxy_config",
        "quota     client-id a: producer_byte_rate 5, scope broker",
        'quota     client-id "b, user c": scope broker',
    ]


def test_a_replication_listener(tmp_path: Path) -> None:
    text = """
listeners:
  - {upstream: {bootstrap: ['k:9092']}}
  - {name: r, replication: true, broker_port_base: 29200, broker_port_count: 5,
     upstream: {brokers: {2: 'k:9095', 1: 'k:9094'}}}
"""
    assert described(tmp_path, text)[2] == (
        "listener  r: replication on 127.0.0.1, brokers at ports 29200 to 29204 for node ids 0 to 4, "
        "upstream 1 at k:9094, 2 at k:9095"
    )


def test_workers_and_the_ports_that_clients_are_told(tmp_path: Path) -> None:
    text = """
workers: 2
listeners:
  - advertised_broker_port_base: 39100
    broker_port_count: 100
    advertised_brokers: {2: "broker-2:9092"}
    upstream: {bootstrap: ['k:9092']}
"""
    _, listener, *more = described(tmp_path, text)
    assert "advertised as 127.0.0.1 at ports from 39100 on (broker 2 at broker-2:9092)" in listener
    assert "workers   2" in more
