"""Settings: listeners for followers, and who enforces replication throttles."""

from pathlib import Path

import pytest

from proxy.config.settings import config_rules
from tests.support.process.settings import read, rejection

REPLICATION = """
listeners:
  - {{broker_port_count: 20, upstream: {{bootstrap: ['k:9092']}}}}
  - {{name: r, replication: true, broker_port_base: 29200, broker_port_count: 10, upstream: {upstream}}}
"""


class TestReplication:
    def test_has_no_bootstrap_port_and_knows_its_brokers(self, tmp_path: Path) -> None:
        settings = read(tmp_path, REPLICATION.format(upstream="{brokers: {1: 'k:9094', 9: '[::1]:9095'}}"))
        clients, replication = settings.listeners
        assert not clients.replication
        assert replication.upstream.brokers == {1: "k:9094", 9: "[::1]:9095"}
        assert settings.client_listeners == (clients,)

    @pytest.mark.parametrize(
        ("upstream", "expected"),
        [
            (
                "{bootstrap: ['k:9092']}",
                "bootstrap: a replication listener takes upstream.brokers instead: the cluster itself says "
                "the proxy's own addresses",
            ),
            (
                "{}",
                "brokers: has to be given for a replication listener: HOST:PORT by node id, for every broker",
            ),
            ("{brokers: {-1: 'k:9094'}}", "brokers: its keys are numbers; expected int >= 0"),
            ("{brokers: {1: k}}", "brokers.1: expected HOST:PORT, got 'k'"),
            (
                "{brokers: {10: 'k:1'}}",
                "brokers.10: its port would be 29210, and brokers' ports end at 29209; raise "
                "broker_port_count",
            ),
            (
                "{brokers: {1: '127.0.0.1:29201'}}",
                "brokers.1: 127.0.0.1:29201 is this proxy itself; expected a broker",
            ),
        ],
    )
    def test_what_is_wrong_with_its_upstream(self, tmp_path: Path, upstream: str, expected: str) -> None:
        message = rejection(tmp_path, REPLICATION.format(upstream=upstream))
        assert message.partition(" ")[2] == f"listeners[1].upstream.{expected}"

    def test_a_listener_for_clients_takes_no_brokers(self, tmp_path: Path) -> None:
        message = rejection(tmp_path, "listeners: [{upstream: {bootstrap: ['k:9092'], brokers: {1: 'k:1'}}}]")
        assert message.endswith(
            "brokers: is for replication listeners; this one learns its brokers from upstream.bootstrap"
        )

    def test_one_for_clients_has_to_be_there(self, tmp_path: Path) -> None:
        message = rejection(tmp_path, "listeners: [{replication: true, upstream: {brokers: {1: 'k:1'}}}]")
        assert "listeners: there is none for clients" in message

    def test_one_has_to_let_the_proxy_ask(self, tmp_path: Path) -> None:
        text = REPLICATION.format(upstream="{brokers: {1: 'k:9094'}}")
        text = text.replace("{broker_port_count: 20", "{principal: {from: sasl}, broker_port_count: 20")
        assert "none lets the proxy ask the cluster" in rejection(tmp_path, text)

    @pytest.mark.parametrize(
        ("enforce", "ours", "passed_on"),
        [("", True, False), ("proxy", True, False), ("broker", False, False), ("both", True, True)],
    )
    def test_who_enforces(self, tmp_path: Path, enforce: str, ours: bool, passed_on: bool) -> None:
        text = REPLICATION.format(upstream="{brokers: {1: 'k:9094'}}")
        more = f"quotas: {{replication: {{enforce: {enforce}}}}}" if enforce else ""
        rules = config_rules(read(tmp_path, text + more))
        rate, switch = "leader.replication.throttled.rate", "leader.replication.throttled"
        assert (rate in rules.keys("broker"), rate in rules.passed_on) == (ours, passed_on)
        assert switch not in rules.passed_on, "no broker knows it"

    def test_without_a_replication_listener_brokers_enforce(self, tmp_path: Path) -> None:
        listener = "listeners: [{upstream: {bootstrap: ['k:9092']}}]\n"
        assert "leader.replication.throttled.rate" not in config_rules(read(tmp_path, listener)).keys(
            "broker"
        )
        message = rejection(tmp_path, listener + "quotas: {replication: {enforce: proxy}}")
        assert "proxy takes a replication listener" in message
        rate = "quotas: {brokers: {1: {leader.replication.throttled.rate: 5}}}"
        assert "brokers themselves enforce it" in rejection(tmp_path, listener + rate)
