from pathlib import Path

import pytest

from proxy.demo.kafka.broker_properties import LISTENERS, BrokerNode, server_properties


def nodes(count: int, folder: Path = Path("/kafka")) -> list[BrokerNode]:
    """Node 1 has the ports 1001, 1002 and 1003, in the order of LISTENERS; node 2 has 2001, and so on."""
    return [
        BrokerNode(
            node_id,
            {name: node_id * 1000 + place for place, name in enumerate(LISTENERS, 1)},
            folder / str(node_id),
        )
        for node_id in range(1, count + 1)
    ]


def properties(
    count: int,
    node_id: int = 1,
    advertised: dict[str, str] | None = None,
    overrides: dict[str, str] | None = None,
) -> dict[str, str]:
    all_nodes = nodes(count)
    text = server_properties(all_nodes[node_id - 1], all_nodes, advertised or {}, overrides or {})
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_single_node_is_broker_and_controller() -> None:
    single = properties(1)
    assert single["process.roles"] == "broker,controller"
    assert single["controller.quorum.voters"] == "1@127.0.0.1:1003"
    assert single["listeners"] == (
        "PLAINTEXT://127.0.0.1:1001,INTERNAL://127.0.0.1:1002,CONTROLLER://127.0.0.1:1003"
    )
    assert single["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1001,INTERNAL://127.0.0.1:1002"
    assert single["log.dirs"] == "/kafka/1/data"


@pytest.mark.parametrize(("count", "controllers"), [(1, {1}), (2, {1}), (3, {1, 2, 3}), (5, {1, 2, 3})])
def test_the_controllers_survive_one_restart_if_there_are_three(count: int, controllers: set[int]) -> None:
    for node_id in range(1, count + 1):
        own = properties(count, node_id)
        is_controller = node_id in controllers
        assert own["process.roles"] == ("broker,controller" if is_controller else "broker")
        assert ("CONTROLLER://" in own["listeners"]) == is_controller
        voters = {int(voter.split("@")[0]) for voter in own["controller.quorum.voters"].split(",")}
        assert voters == controllers


@pytest.mark.parametrize(("count", "replicas"), [(1, "1"), (2, "2"), (3, "3"), (5, "3")])
def test_internal_topics_fit_the_cluster(count: int, replicas: str) -> None:
    own = properties(count)
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        assert own[f"{topic}.replication.factor"] == replicas
    assert own["auto.create.topics.enable"] == "false"
    assert own["group.initial.rebalance.delay.ms"] == "0"


def test_a_listener_can_be_advertised_elsewhere() -> None:
    own = properties(1, advertised={"INTERNAL": "127.0.0.1:29201"})
    assert own["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1001,INTERNAL://127.0.0.1:29201"
    assert "INTERNAL://127.0.0.1:1002" in own["listeners"]


def test_overrides_take_precedence() -> None:
    own = properties(1, overrides={"auto.create.topics.enable": "true", "message.max.bytes": "5"})
    assert own["auto.create.topics.enable"] == "true"
    assert own["message.max.bytes"] == "5"


def test_a_backslash_is_escaped() -> None:
    assert properties(1, overrides={"sasl.kerberos.principal.to.local.rules": r"RULE:s/\w+//"}) == {
        **properties(1),
        "sasl.kerberos.principal.to.local.rules": r"RULE:s/\\w+//",
    }
