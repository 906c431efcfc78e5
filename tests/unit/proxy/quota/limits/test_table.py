import pytest

from proxy.quota.identity import DEFAULT
from proxy.quota.limits.table import EMPTY, Table
from tests.support.present import present

ALICE, BOB, PAIR, IP = (
    ("alice", None, None),
    ("bob", None, None),
    ("bob", "c", None),
    (None, None, "10.0.0.1"),
)


def test_values_are_set_and_removed_and_the_old_table_stays() -> None:
    old = Table({ALICE: 1.0, BOB: 2.0})
    new = old.with_changes({ALICE: None, BOB: 3.0, PAIR: 4.0, IP: None})
    assert new.values == {BOB: 3.0, PAIR: 4.0}
    assert old.values == {ALICE: 1.0, BOB: 2.0}
    assert EMPTY.with_changes({ALICE: 1.0}).values == {ALICE: 1.0}
    assert EMPTY.values == {}


def test_a_change_is_known() -> None:
    old = Table({ALICE: 1.0, BOB: 2.0})
    change = present(old.with_changes({ALICE: None, BOB: 3.0, PAIR: 4.0, IP: None}).change_since(old))
    assert set(change.entities) == {ALICE, BOB, PAIR, IP}
    assert change.moved == {ALICE, PAIR}


def test_from_a_table_to_itself_nothing_changes() -> None:
    table = Table({ALICE: 1.0})
    change = present(table.change_since(table))
    assert (change.entities, change.moved) == ([], set())


def test_any_other_table_may_differ_in_anything() -> None:
    old = Table({ALICE: 1.0})
    new = old.with_changes({BOB: 1.0})
    assert old.change_since(new) is None
    assert new.change_since(Table({ALICE: 1.0})) is None
    assert new.with_changes({BOB: 2.0}).change_since(old) is None
    assert Table({}).change_since(Table({})) is None


@pytest.mark.parametrize(
    "entity",
    [
        (DEFAULT, None, None),
        (None, DEFAULT, None),
        ("bob", DEFAULT, None),
        (DEFAULT, "c", None),
        (None, None, DEFAULT),
        (None, None, "10.0.0.0/8"),
    ],
)
def test_a_change_of_a_default_or_a_network_may_change_any_bucket(
    entity: tuple[str | None, str | None, str | None],
) -> None:
    old = Table({})
    assert old.with_changes({ALICE: 1.0, entity: 2.0}).change_since(old) is None


def test_so_may_many_changes_at_once() -> None:
    old = Table({})
    few: dict[tuple[str | None, str | None, str | None], float] = {
        (f"user-{index}", None, None): 1.0 for index in range(1000)
    }
    assert old.with_changes(few).change_since(old) is not None
    assert old.with_changes(few | {ALICE: 1.0}).change_since(old) is None


def test_many_changes_set_and_remove_values_and_copy_no_entity() -> None:
    names = [(f"user-{index}", None, None) for index in range(3000)]
    old = Table(dict.fromkeys(names[:2000], 1.0))
    new = old.with_changes({name: None if index % 3 == 0 else 2.0 for index, name in enumerate(names)})
    assert new.values == {name: 2.0 for index, name in enumerate(names) if index % 3 != 0}
    assert old.values == dict.fromkeys(names[:2000], 1.0)
    assert new.change_since(old) is None
    made = EMPTY.with_changes(dict.fromkeys(names, 1.0))
    assert all(entity is name for entity, name in zip(made.values, names, strict=True))


def test_many_removals_of_entities_without_a_value_change_nothing() -> None:
    names = [(f"user-{index}", None, None) for index in range(3000)]
    assert Table({ALICE: 1.0}).with_changes(dict.fromkeys(names)).values == {ALICE: 1.0}
