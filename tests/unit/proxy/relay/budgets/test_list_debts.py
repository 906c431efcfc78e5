"""ListDebts: until when a client has paid for its lists."""

import pytest

from proxy.relay.budgets.list_debts import DEBTS_AT_MOST, LineKey, ListDebts

ALICE: LineKey = (1, ("alice", ""))
NOW = 1000.0


def test_what_lists_use_adds_up() -> None:
    debts = ListDebts()
    debts.add(ALICE, 2.0, 100.0, NOW)
    debts.add(ALICE, 3.0, 100.0, NOW + 1.0)
    assert debts.wait_seconds(ALICE, NOW + 1.0) == 4.0
    assert debts.wait_seconds(ALICE, NOW + 5.0) == 0.0


def test_what_was_paid_long_ago_pays_for_nothing() -> None:
    debts = ListDebts()
    debts.add(ALICE, 2.0, 100.0, NOW)
    debts.add(ALICE, 3.0, 100.0, NOW + 60.0)
    assert debts.wait_seconds(ALICE, NOW + 60.0) == 3.0


def test_a_client_owes_no_more_than_its_whole_debt() -> None:
    debts = ListDebts()
    debts.add(ALICE, 8.0, 100.0, NOW)
    debts.add(ALICE, 8.0, 11.0, NOW)
    assert debts.wait_seconds(ALICE, NOW) == 11.0


@pytest.mark.parametrize("key", [(2, ("alice", "")), (1, ("bob", "")), (1, ("alice", "10.0.0.1"))])
def test_others_owe_nothing(key: LineKey) -> None:
    debts = ListDebts()
    debts.add(ALICE, 2.0, 100.0, NOW)
    assert debts.wait_seconds(key, NOW) == 0.0


def test_paid_debts_are_forgotten() -> None:
    debts = ListDebts()
    for number in range(5 * DEBTS_AT_MOST):
        debts.add((1, (f"user {number}", "")), 1.0, 1.0, NOW + number)
        assert len(debts) <= DEBTS_AT_MOST
    unpaid = [(1, (f"owes {number}", "")) for number in range(3 * DEBTS_AT_MOST)]
    for key in unpaid:
        debts.add(key, 1e6, 1e6, NOW)
    assert all(debts.wait_seconds(key, NOW) == 1e6 for key in unpaid)
