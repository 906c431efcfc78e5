from collections.abc import Callable

import pytest

from proxy.quota.limits.resources import (
    BOOLEAN,
    BROKER,
    DEFAULT_RESOURCE,
    LIST,
    LONG,
    NO_RESOURCES,
    STRING,
    TOPIC,
    ConfigKey,
    Resources,
    broker_name,
    split_list,
)

RATE, FLAG = "rate", "flag"


def key(
    type: str, least: int = 0, check: Callable[[str], str] | None = None, choices: tuple[str, ...] = ()
) -> ConfigKey:
    return ConfigKey(
        name="q",
        resource=TOPIC,
        type=type,
        documentation="What it is.",
        default=None,
        least=least,
        check=check,
        choices=choices,
    )


@pytest.mark.parametrize(
    ("node_id", "name"),
    [("0", "0"), ("000", "0"), ("12", "12"), ("007", "7"), ("0" * 20 + "2147483647", "2147483647")],
)
def test_a_broker_has_one_name(node_id: str, name: str) -> None:
    assert broker_name(node_id) == name


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "x", "0x1", "٣", "2147483648", "9" * 5000])
def test_no_node_id(text: str) -> None:
    assert broker_name(text) is None


@pytest.mark.parametrize(
    ("config", "text", "canonical"),
    [
        (key(LONG), "0", "0"),
        (key(LONG, least=1), " +0012 ", "12"),
        (key(LONG, least=-5), "-5", "-5"),
        (key(LONG), "9223372036854775807", "9223372036854775807"),
        (key(BOOLEAN), " True", "true"),
        (key(BOOLEAN), "FALSE", "false"),
        (key(STRING), " any thing ", "any thing"),
        (key(STRING, choices=("a", "b")), "b ", "b"),
        (key(LIST), "", ""),
        (key(LIST), " a , b,", "a,b,"),
    ],
)
def test_a_value_that_kafka_takes_has_one_spelling(config: ConfigKey, text: str, canonical: str) -> None:
    assert config.problem(text) == ""
    assert config.canonical(text) == canonical


@pytest.mark.parametrize(
    ("config", "text", "why"),
    [
        (key(LONG), "", "Not a number of type LONG"),
        (key(LONG), "1.5", "Not a number of type LONG"),
        (key(LONG), "+", "Not a number of type LONG"),
        (key(LONG), "1_000", "Not a number of type LONG"),
        (key(LONG), "\u0663", "Not a number of type LONG"),
        (key(LONG), "9223372036854775808", "Not a number of type LONG"),
        (key(LONG), "9" * 5000, "Not a number of type LONG"),
        (key(LONG, least=1), "0", "Value must be at least 1"),
        (key(LONG), "-1", "Value must be at least 0"),
        (key(BOOLEAN), "yes", "Expected value to be either true or false"),
        (key(STRING, choices=("a", "b")), "c", "String must be one of: a, b"),
    ],
)
def test_an_invalid_value_gets_kafkas_message(config: ConfigKey, text: str, why: str) -> None:
    assert config.problem(text) == f"Invalid value {text} for configuration q: {why}"


def test_an_invalid_list_is_shown_as_java_shows_lists() -> None:
    config = key(LIST, check=lambda text: f"must not be {text}")
    assert config.problem("x,y") == "Invalid value [x, y] for configuration q: q must not be x,y"


def test_no_value_is_none() -> None:
    assert key(LONG).problem(None) == "Null value not supported for : q"


def test_a_list_has_elements() -> None:
    assert split_list(" a ,b,, c") == ["a", "b", "", "c"]
    assert split_list("  ") == []


def test_a_resources_own_value_beats_the_default() -> None:
    resources = Resources({"t": {RATE: "5"}, DEFAULT_RESOURCE: {RATE: "7", FLAG: "true"}})
    assert resources.number(TOPIC, "t", RATE) == 5.0
    assert resources.number(TOPIC, "other", RATE) == 7.0
    assert resources.own_number(TOPIC, "t", RATE) == 5.0
    assert resources.own_number(TOPIC, "other", RATE) is None
    assert resources.own_text(TOPIC, "t", FLAG) is None
    assert resources.text(TOPIC, "t", FLAG) == "true"
    assert resources.configured(TOPIC, RATE) == {"t": "5", DEFAULT_RESOURCE: "7"}
    assert resources.configured(TOPIC, "q") == {}


def test_a_config_that_is_not_set_has_no_value() -> None:
    assert NO_RESOURCES.number(TOPIC, "t", RATE) is None
    assert NO_RESOURCES.text(BROKER, "1", RATE) is None


def test_topics_and_brokers_do_not_meet() -> None:
    resources = Resources({"1": {RATE: "5"}}, {"1": {RATE: "6"}, DEFAULT_RESOURCE: {FLAG: "false"}})
    assert resources.number(TOPIC, "1", RATE) == 5.0
    assert resources.number(BROKER, "1", RATE) == 6.0
    assert (resources.text(TOPIC, "1", FLAG), resources.text(BROKER, "1", FLAG)) == (None, "false")
    assert resources.all(TOPIC) == {"1": {RATE: "5"}}
    assert resources.all(BROKER) == {"1": {RATE: "6"}, DEFAULT_RESOURCE: {FLAG: "false"}}


@pytest.mark.parametrize(("resource", "other"), [(TOPIC, BROKER), (BROKER, TOPIC)])
def test_a_change_makes_others_and_leaves_these(resource: str, other: str) -> None:
    old = Resources().with_changes(resource, {"1": {RATE: "5", FLAG: "true"}, "2": {RATE: "6"}})
    old = old.with_changes(other, {"1": {RATE: "50"}})
    new = old.with_changes(resource, {"1": {RATE: None, FLAG: "false"}, "2": {RATE: None}, "3": {RATE: "8"}})
    assert old.all(resource) == {"1": {RATE: "5", FLAG: "true"}, "2": {RATE: "6"}}
    assert new.all(resource) == {"1": {FLAG: "false"}, "3": {RATE: "8"}}
    assert new.configured(resource, RATE) == {"3": "8"}
    assert new.all(other) == {"1": {RATE: "50"}}


def test_what_they_were_made_from_may_change() -> None:
    values = {RATE: "5"}
    topics = {"t": values}
    resources = Resources(topics)
    values[RATE] = "6"
    topics.clear()
    assert resources.all(TOPIC) == {"t": {RATE: "5"}}
