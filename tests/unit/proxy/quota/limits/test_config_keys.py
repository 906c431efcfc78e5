import pytest

from proxy.quota.limits import config_keys
from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE_ACTION,
    LEADER_THROTTLED,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    PRODUCER_BYTE_RATE,
    PRODUCER_BYTE_RATE_ACTION,
)
from proxy.quota.limits.resources import BROKER, TOPIC, ConfigKey

KEYS = [value for value in vars(config_keys).values() if isinstance(value, ConfigKey)]


def test_a_name_is_one_config() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS) == 16


@pytest.mark.parametrize("key", KEYS, ids=[key.name for key in KEYS])
def test_a_config_says_what_it_is_and_takes_its_default(key: ConfigKey) -> None:
    assert key.documentation.endswith(".")
    assert key.resource in (TOPIC, BROKER)
    assert key.default is None or key.problem(key.default) == ""


@pytest.mark.parametrize("value", ["", " ", "*", " * ", "*,", "0:1", "0:1,12:345", " 0:1 , 1:2 ", "0:1,,1:2"])
def test_throttled_replicas_are_a_list_or_all(value: str) -> None:
    assert LEADER_THROTTLED_REPLICAS.problem(value) == ""


@pytest.mark.parametrize(
    "value", ["*,0:1", "**", "1", "1:", ":1", "1:2:3", "a:1", "-1:2", "0:1;1:2", "\u0663:1"]
)
def test_other_topics_are_not_limited(value: str) -> None:
    name = LEADER_THROTTLED_REPLICAS.name
    shown = value.replace(",", ", ")
    assert LEADER_THROTTLED_REPLICAS.problem(value) == (
        f"Invalid value [{shown}] for configuration {name}: {name} must be the literal '*' or a list of "
        "replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def test_a_rate_of_replication_may_be_zero_and_another_may_not() -> None:
    assert LEADER_THROTTLED_RATE.problem("0") == ""
    assert LEADER_THROTTLED_RATE.problem("-1") != ""
    assert PRODUCER_BYTE_RATE.problem("0") != ""
    assert PRODUCER_BYTE_RATE.problem("1") == ""


def test_actions_are_those_of_their_side() -> None:
    assert PRODUCER_BYTE_RATE_ACTION.problem("reject") == PRODUCER_BYTE_RATE_ACTION.problem("throttle") == ""
    assert CONSUMER_BYTE_RATE_ACTION.problem("omit") == CONSUMER_BYTE_RATE_ACTION.problem("throttle") == ""
    assert PRODUCER_BYTE_RATE_ACTION.problem("omit").endswith("String must be one of: throttle, reject")
    assert LEADER_THROTTLED.problem("maybe").endswith("Expected value to be either true or false")
