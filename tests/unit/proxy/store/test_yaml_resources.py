"""Quotas of topics and brokers in YAML: what is taken, and what gets a sentence with its place."""

from typing import Any

import pytest
import yaml

from proxy.errors import SettingsError
from proxy.quota.config_rules import ConfigRules
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.yaml_resources import read_resources, resources_of
from tests.support.stories.config_rules import CONFIG_RULES, KIND


def read(text: str) -> Any:
    quotas = yaml.safe_load(text)
    return read_resources(quotas.get("topics", {}), quotas.get("brokers", {}), CONFIG_RULES, ("quotas",))


def test_topics_and_brokers() -> None:
    layer = read(
        """
        topics:
          orders: {producer.byte.rate: 1048576, consumer.byte.rate: 2000000.0}
          other: {bytes.in.per.sec.threshold: "77"}
          <default>: {leader.replication.throttled.replicas: ["0:1", "1:2"]}
          t: {follower.replication.throttled.replicas: "*", leader.replication.throttled.replicas: ""}
        brokers:
          <default>: {total.bytes.in.per.sec.threshold: 104857600}
          2: {follower.replication.throttled: true, leader.replication.throttled.rate: 0}
          "03": {leader.replication.throttled: "FALSE"}
        """
    )
    resources = resources_of(layer)
    assert resources.topics == {
        "orders": {"producer.byte.rate": "1048576", "consumer.byte.rate": "2000000"},
        "other": {"bytes.in.per.sec.threshold": "77"},
        DEFAULT_RESOURCE: {"leader.replication.throttled.replicas": "0:1,1:2"},
        "t": {"follower.replication.throttled.replicas": "*", "leader.replication.throttled.replicas": ""},
    }
    assert resources.brokers == {
        DEFAULT_RESOURCE: {"total.bytes.in.per.sec.threshold": "104857600"},
        "2": {"follower.replication.throttled": "true", "leader.replication.throttled.rate": "0"},
        "3": {"leader.replication.throttled": "false"},
    }


@pytest.mark.parametrize(
    ("action", "configs"),
    [
        ("omit", {"consumer.byte.rate.action": "omit"}),
        ("reject", {"producer.byte.rate.action": "reject"}),
        ("throttle", {"consumer.byte.rate.action": "throttle", "producer.byte.rate.action": "throttle"}),
    ],
)
def test_an_action_is_that_of_its_side(action: str, configs: dict[str, str]) -> None:
    layer = read(f"topics: {{t: {{action: {action}}}}}")
    assert layer.lasting == {ConfigResource(TOPIC, "t"): configs}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topics: {t: 5}", "quotas.topics.t: expected a mapping of configs, got 5"),
        ("topics: {t: {}}", "quotas.topics.t: has no quota; expected one of bytes.in.per.sec.threshold, "),
        ("topics: {'': {producer.byte.rate: 5}}", "quotas.topics.: no topic can be called so"),
        ("topics: {a b: {producer.byte.rate: 5}}", "quotas.topics.a b: no topic can be called so"),
        ("topics: {..: {producer.byte.rate: 5}}", "quotas.topics...: no topic can be called so"),
        ("topics: {t: {producer.byte.rat: 5}}", "unknown key; did you mean producer.byte.rate?"),
        ("topics: {t: {total.bytes.in.per.sec.threshold: 5}}", "quotas.topics.t.total.bytes.in.per.sec"),
        ("brokers: {1: {producer.byte.rate: 5}}", "quotas.brokers.1.producer.byte.rate: unknown key; "),
        ("brokers: {one: {leader.replication.throttled: true}}", "expected a broker's node id or <default>"),
        ("brokers: {-1: {leader.replication.throttled: true}}", "expected a broker's node id or <default>"),
        (
            "brokers: {1: {leader.replication.throttled: true}, '01': {leader.replication.throttled: true}}",
            "quotas.brokers.01: is there twice",
        ),
        ("topics: {t: {producer.byte.rate: 0}}", "quotas.topics.t.producer.byte.rate: Invalid value 0 for "),
        ("topics: {t: {producer.byte.rate: 1.5}}", "producer.byte.rate: expected a whole number, got 1.5"),
        ("topics: {t: {producer.byte.rate: true}}", "producer.byte.rate: expected a whole number, got true"),
        ("topics: {t: {producer.byte.rate: }}", "producer.byte.rate: expected a whole number, got nothing"),
        ("brokers: {1: {leader.replication.throttled: 1}}", "expected true or false, got 1"),
        ("topics: {t: {leader.replication.throttled.replicas: 1:2}}", "each in quotes, got 62"),
        ("topics: {t: {leader.replication.throttled.replicas: [1, 2]}}", "each in quotes, got a list"),
        ("topics: {t: {leader.replication.throttled.replicas: x}}", "[partitionId]:[brokerId]"),
        ("topics: {t: {producer.byte.rate.action: 5}}", "producer.byte.rate.action: expected text, got 5"),
        ("topics: {t: {producer.byte.rate.action: omit}}", "String must be one of: throttle, reject"),
        ("topics: {t: {action: drop}}", "quotas.topics.t.action: expected one of omit, reject, throttle"),
        (
            "topics: {t: {action: omit, consumer.byte.rate.action: omit}}",
            "consumer.byte.rate.action is given",
        ),
        ("brokers: {1: {action: omit}}", "quotas.brokers.1.action: unknown key"),
        (
            "{topics: {t: {bytes.in.per.sec.threshold: 6}}, "
            "brokers: {<default>: {total.bytes.in.per.sec.threshold: 5}}}",
            "quotas: 6 is more than 5",
        ),
    ],
)
def test_a_mistake_gets_a_sentence(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(text)
    assert message in str(caught.value)


def test_brokers_have_node_ids() -> None:
    layer = read("brokers: {7: {leader.replication.throttled: true}}")
    assert list(layer.lasting) == [ConfigResource(BROKER, "7")]


def test_what_is_not_the_proxys_to_enforce() -> None:
    rules = ConfigRules(
        [KIND],
        left_to_brokers=frozenset(["leader.replication.throttled.rate"]),
        unenforced=frozenset(["leader.replication.throttled"]),
    )
    for name, value, why in (
        ("leader.replication.throttled.rate", 5, "brokers themselves enforce it"),
        ("leader.replication.throttled", True, "nobody would enforce it"),
    ):
        with pytest.raises(SettingsError, match=why):
            read_resources({}, {1: {name: value}}, rules, ())
