"""Quotas of topics and brokers in YAML: what is taken, and what gets a sentence with its place."""

from re import escape
from typing import Any

import pytest
import yaml

from proxy.errors import SettingsError, spell
from proxy.quota.config_rules import ConfigRules
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.yaml_resources import read_resources, resources_of
from tests.support.quotas.config_rules import CONFIG_RULES, KIND, too_much


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
def test_action_stands_for_the_config_that_accepts_it(action: str, configs: dict[str, str]) -> None:
    layer = read(f"topics: {{t: {{action: {action}}}}}")
    assert layer.lasting == {ConfigResource(TOPIC, "t"): configs}


@pytest.mark.parametrize(
    ("configs", "actions"),
    [
        ("topic.consumer.byte.rate: 5, action: omit", {"topic.consumer.byte.rate.action"}),
        ("producer.byte.rate: 5, action: reject", {"producer.byte.rate.action"}),
        (
            "consumer.byte.rate: 5, topic.consumer.byte.rate: 5, action: omit",
            {"consumer.byte.rate.action", "topic.consumer.byte.rate.action"},
        ),
        ("topic.producer.byte.rate: 5, action: omit", {"consumer.byte.rate.action"}),
    ],
)
def test_action_is_that_of_the_whole_topic_if_the_rate_is(configs: str, actions: set[str]) -> None:
    (values,) = read(f"topics: {{t: {{{configs}}}}}").lasting.values()
    assert {name for name in values if name.endswith(".action")} == actions


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("topics: {t: 5}", "topics.t"),
        ("topics: {t: {}}", "topics.t"),
        ("topics: {'': {producer.byte.rate: 5}}", "topics."),
        ("topics: {a b: {producer.byte.rate: 5}}", "topics.a b"),
        ("topics: {..: {producer.byte.rate: 5}}", "topics..."),
        ("topics: {t: {producer.byte.rat: 5}}", "topics.t.producer.byte.rat"),
        (
            "topics: {t: {total.bytes.in.per.sec.threshold: 5}}",
            "topics.t.total.bytes.in.per.sec.threshold",
        ),
        ("brokers: {1: {producer.byte.rate: 5}}", "brokers.1.producer.byte.rate"),
        ("brokers: {one: {leader.replication.throttled: true}}", "brokers.one"),
        ("brokers: {-1: {leader.replication.throttled: true}}", "brokers.-1"),
        (f"brokers: {{? '{'9' * 5000}' : {{leader.replication.throttled: true}}}}", f"brokers.{'9' * 5000}"),
        (
            "brokers: {1: {leader.replication.throttled: true}, '01': {leader.replication.throttled: true}}",
            "brokers.01",
        ),
        ("topics: {t: {producer.byte.rate: 0}}", "topics.t.producer.byte.rate"),
        ("topics: {t: {producer.byte.rate: 1.5}}", "topics.t.producer.byte.rate"),
        ("topics: {t: {producer.byte.rate: true}}", "topics.t.producer.byte.rate"),
        ("topics: {t: {producer.byte.rate: }}", "topics.t.producer.byte.rate"),
        ("brokers: {1: {leader.replication.throttled: 1}}", "brokers.1.leader.replication.throttled"),
        (
            "topics: {t: {leader.replication.throttled.replicas: 1:2}}",
            "topics.t.leader.replication.throttled.replicas",
        ),
        (
            "topics: {t: {leader.replication.throttled.replicas: [1, 2]}}",
            "topics.t.leader.replication.throttled.replicas",
        ),
        (
            "topics: {t: {leader.replication.throttled.replicas: x}}",
            "topics.t.leader.replication.throttled.replicas",
        ),
        ("topics: {t: {producer.byte.rate.action: 5}}", "topics.t.producer.byte.rate.action"),
        ("topics: {t: {producer.byte.rate.action: omit}}", "topics.t.producer.byte.rate.action"),
        ("topics: {t: {action: drop}}", "topics.t.action"),
        ("topics: {t: {action: omit, consumer.byte.rate.action: omit}}", "topics.t.action"),
        ("brokers: {1: {action: omit}}", "brokers.1.action"),
    ],
)
def test_mistake_is_rejected_by_its_key(text: str, key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(text)
    assert spell(caught.value.key) == f"quotas.{key}"


def test_configs_that_conflict_are_rejected() -> None:
    text = (
        "{topics: {t: {bytes.in.per.sec.threshold: 6}}, "
        "brokers: {<default>: {total.bytes.in.per.sec.threshold: 5}}}"
    )
    with pytest.raises(SettingsError, match=escape(too_much("t (6)", 6, 5))) as caught:
        read(text)
    assert caught.value.key == ("quotas",)


def test_brokers_have_node_ids() -> None:
    layer = read("brokers: {7: {leader.replication.throttled: true}}")
    assert list(layer.lasting) == [ConfigResource(BROKER, "7")]


@pytest.mark.parametrize(
    ("name", "value"), [("leader.replication.throttled.rate", 5), ("leader.replication.throttled", True)]
)
def test_config_that_the_proxy_does_not_enforce_is_rejected(name: str, value: object) -> None:
    rules = ConfigRules(
        [KIND],
        left_to_brokers=frozenset(["leader.replication.throttled.rate"]),
        unenforced=frozenset(["leader.replication.throttled"]),
    )
    with pytest.raises(SettingsError, match="replication listener") as caught:
        read_resources({}, {1: {name: value}}, rules, ())
    assert caught.value.key == ("brokers", "1", name)


def test_a_number_with_a_unit_is_rejected_with_the_number_to_write() -> None:
    with pytest.raises(SettingsError, match="1048576"):
        read("topics: {t: {producer.byte.rate: 1MB/s}}")
