"""Entities: one order, and names that cannot be taken for something else."""

import pytest

from proxy.cli.quotas.entity import make_entity, show_entity, show_name, show_parts, sort_key


def test_the_order_of_the_parts_makes_no_difference() -> None:
    assert make_entity([("client-id", "app"), ("user", "alice")]) == (("user", "alice"), ("client-id", "app"))


def test_types_that_kafka_may_get_come_last() -> None:
    assert make_entity([("cell", "c"), ("ip", "::1")]) == (("ip", "::1"), ("cell", "c"))


def test_the_default_is_no_name() -> None:
    assert (
        show_entity((("user", None), ("client-id", "<default>"))) == 'user <default>, client-id "<default>"'
    )


def test_parts_of_a_file_have_the_default_as_a_word() -> None:
    assert show_parts({"user": "<default>", "client-id": "a b"}) == 'user <default>, client-id "a b"'


@pytest.mark.parametrize(
    "name", ["alice", "CN=alice", "10.0.0.1", "::1", "a_b-c.d", "zoë", "User:alice", "-x"]
)
def test_plain_names_are_shown_as_they_are(name: str) -> None:
    assert show_name(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b", '"a b"'),
        ("a, client-id b", '"a, client-id b"'),
        ("", '""'),
        ("-", '"-"'),
        ("new\nline", r'"new\nline"'),
        ("\x1b[31mred", r'"\u001b[31mred"'),
        ("\u202eright to left", r'"\u202eright to left"'),
    ],
)
def test_other_names_are_quoted_and_control_no_terminal(name: str, shown: str) -> None:
    assert show_name(name) == shown


def test_names_come_before_the_default_and_users_before_addresses() -> None:
    entities = [
        (("ip", "10.0.0.1"),),
        (("client-id", "app"),),
        (("user", None),),
        (("user", "zoe"),),
        (("user", "alice"), ("client-id", None)),
        (("user", "alice"), ("client-id", "app")),
        (("user", "alice"),),
    ]
    assert sorted(entities, key=sort_key) == [
        (("user", "alice"),),
        (("user", "alice"), ("client-id", "app")),
        (("user", "alice"), ("client-id", None)),
        (("user", "zoe"),),
        (("user", None),),
        (("client-id", "app"),),
        (("ip", "10.0.0.1"),),
    ]
