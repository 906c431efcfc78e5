from proxy.quota.config_rules import ConfigRules
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, Resources
from tests.support.quotas.config_rules import CONFIG_KEYS, KIND, too_much

RULES = ConfigRules([KIND])
TOTAL = {DEFAULT_RESOURCE: {"total.bytes.in.per.sec.threshold": "5"}}


def test_every_config_of_a_kind_is_one_of_its_resource() -> None:
    assert {**RULES.keys(TOPIC), **RULES.keys(BROKER)} == {key.name: key for key in CONFIG_KEYS}
    assert all(key.resource == BROKER for key in RULES.keys(BROKER).values())
    assert "producer.byte.rate" in RULES.keys(TOPIC)


def test_conflicts_come_from_the_kinds() -> None:
    assert RULES.conflict(Resources({"t": {"bytes.in.per.sec.threshold": "5"}}, TOTAL)) == ""
    assert RULES.conflict(Resources({"t": {"bytes.in.per.sec.threshold": "6"}}, TOTAL)) == too_much(
        "t (6)", 6, 5
    )


def test_without_kinds_there_is_nothing_to_configure() -> None:
    assert ConfigRules([]).keys(TOPIC) == {}
    assert ConfigRules([]).conflict(Resources({"t": {"q": "6"}})) == ""


def test_configs_left_to_brokers_are_not_quotas() -> None:
    left = frozenset(["producer.byte.rate"])
    rules = ConfigRules([KIND], left_to_brokers=left, forwarded=frozenset(["p"]))
    assert RULES.keys(TOPIC).keys() - rules.keys(TOPIC).keys() == left
    assert (rules.left_to_brokers, rules.forwarded) == (left, frozenset(["p"]))
