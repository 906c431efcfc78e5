import pytest

from proxy.quota.identity import Identity
from proxy.quota.measure.fair_share import USERS_AT_MOST, Debtors, FairShare

RATE = 100.0


def connections(count: int, user: str = "u") -> list[Identity]:
    return [Identity(user, "c", "127.0.0.1") for _ in range(count)]


def test_one_alone_waits_for_its_own_debt() -> None:
    (one,) = connections(1)
    shares = FairShare(10.0)
    assert shares.owe(one, 50.0, RATE, 10.0) == pytest.approx(0.5)
    assert shares.owe(one, 50.0, RATE, 10.25) == pytest.approx(0.75)
    assert shares.owe(one, 50.0, RATE, 11.0) == pytest.approx(0.5)


def test_equal_debts_are_paid_together() -> None:
    shares = FairShare(10.0)
    waits = [shares.owe(one, 50.0, RATE, 10.0) for one in connections(4)]
    assert waits == pytest.approx([0.5, 1.0, 1.5, 2.0])


def test_a_new_connection_waits_for_the_whole_debt() -> None:
    large, small, late = connections(3)
    shares = FairShare(10.0)
    assert shares.owe(large, 1000.0, RATE, 10.0) == pytest.approx(10.0)
    assert shares.owe(small, 10.0, RATE, 10.0) == pytest.approx(10.1)
    assert shares.owe(late, 10.0, RATE, 11.0) == pytest.approx(9.2)


def test_then_a_small_debt_does_not_wait_for_a_large_one() -> None:
    large, small = connections(2)
    shares = FairShare(10.0)
    shares.owe(large, 1000.0, RATE, 10.0)
    shares.owe(small, 10.0, RATE, 10.0)
    assert shares.owe(small, 10.0, RATE, 11.0) == pytest.approx(0.2)
    assert shares.owe(small, 10.0, RATE, 11.2) == pytest.approx(0.2)
    assert shares.owe(small, 10.0, RATE, 11.3) == pytest.approx(0.3)
    assert shares.owe(large, 0.0, RATE, 11.3) == pytest.approx(9.1)


def test_what_one_does_not_need_goes_to_the_others() -> None:
    large, small = connections(2)
    shares = FairShare(0.0)
    shares.owe(large, 100.0, RATE, 0.0)
    shares.owe(small, 10.0, RATE, 0.0)
    assert shares.owe(large, 0.0, RATE, 0.5) == pytest.approx(0.6)
    assert shares.owe(small, 0.0, RATE, 0.5) == pytest.approx(0.0)


def test_a_connection_that_has_waited_owes_nothing() -> None:
    one, other = connections(2)
    shares = FairShare(0.0)
    shares.owe(one, 30.0, RATE, 0.0)
    shares.owe(other, 70.0, RATE, 0.0)
    assert shares.owe(one, 10.0, RATE, 0.6) == pytest.approx(0.2)
    assert shares.owe(other, 0.0, RATE, 1.1) == pytest.approx(0.0)


def test_a_clock_that_goes_back_pays_nothing() -> None:
    (one,) = connections(1)
    shares = FairShare(10.0)
    shares.owe(one, 50.0, RATE, 10.0)
    assert shares.owe(one, 0.0, RATE, 9.0) == pytest.approx(0.5)
    assert shares.owe(one, 0.0, RATE, 10.1) == pytest.approx(0.4)


def test_until_a_change_of_the_rate_the_old_one_paid() -> None:
    (one,) = connections(1)
    shares = FairShare(0.0)
    shares.owe(one, 100.0, RATE, 0.0)
    shares.pay(RATE, 0.5)
    assert shares.owe(one, 0.0, 10.0, 0.5) == pytest.approx(5.0)


def test_connections_that_come_and_go_leave_nothing_behind() -> None:
    last = Identity("u", "c", "127.0.0.1")
    shares = FairShare(0.0)
    shares.owe(last, 1e9, RATE, 0.0)
    for step, one in enumerate(connections(10_000)):
        shares.owe(one, 1.0, RATE, step * 0.02)
    assert len(shares._end_of) < 2000


def test_what_is_given_back_pays_the_debts_of_others() -> None:
    leaving, staying = connections(2)
    shares = FairShare(10.0)
    shares.owe(leaving, 50.0, RATE, 10.0)
    shares.owe(staying, 50.0, RATE, 10.0)
    shares.give_back(leaving, 50.0, RATE, 10.5)
    assert shares.owe(staying, 10.0, RATE, 10.5) == pytest.approx(0.1)


def test_a_paid_debt_that_is_given_back_pays_those_of_others() -> None:
    leaving, staying = connections(2)
    shares = FairShare(10.0)
    shares.owe(leaving, 20.0, RATE, 10.0)
    shares.owe(staying, 50.0, RATE, 10.0)
    shares.give_back(leaving, 20.0, RATE, 10.5)
    assert shares.owe(staying, 10.0, RATE, 10.5) == pytest.approx(0.1)


def test_a_part_of_a_debt_is_given_back() -> None:
    one, other, late = connections(3)
    (stranger,) = connections(1, "v")
    shares = FairShare(10.0)
    shares.owe(one, 50.0, RATE, 10.0)
    shares.owe(other, 10.0, RATE, 10.0)
    shares.owe(stranger, 1000.0, RATE, 10.0)
    shares.give_back(one, 20.0, RATE, 10.0)
    assert shares.owe(one, 0.0, RATE, 10.0) == pytest.approx(0.7)
    # A new connection waits for what its user owes now.
    assert shares.owe(late, 0.0, RATE, 10.0) == pytest.approx(0.7)
    assert shares.ahead_seconds == pytest.approx(0.7)


def test_debtors_are_those_whose_debt_is_not_paid() -> None:
    one, other = connections(2)
    shares = FairShare(10.0)
    shares.owe(one, 10.0, RATE, 10.0)
    shares.owe(other, 50.0, RATE, 10.0)
    assert shares.debtors == 2
    shares.pay(RATE, 10.3)
    assert shares.debtors == 1


def test_what_a_connection_without_a_debt_gives_back_changes_nothing() -> None:
    one, other = connections(2)
    shares = FairShare(10.0)
    shares.owe(one, 50.0, RATE, 10.0)
    shares.give_back(other, 20.0, RATE, 10.0)
    assert shares.debtors == 1
    assert shares.owe(one, 0.0, RATE, 10.0) == pytest.approx(0.5)


def test_users_that_come_and_go_leave_nothing_behind() -> None:
    last = Identity("last", "c", "127.0.0.1")
    shares = FairShare(0.0)
    shares.owe(last, 1e9, RATE, 0.0)
    for step in range(5000):
        (one,) = connections(1, f"user-{step}")
        shares.owe(one, 1.0, RATE, step * 0.02)
    assert len(shares._latest) < 2000
    # The debt of a user that stays is known to a new connection.
    (late,) = connections(1, "last")
    assert shares.owe(late, 0.0, RATE, 100.0) > 1e6


def test_only_a_new_connection_of_a_user_with_another_is_new() -> None:
    debtors = Debtors()
    first, second = connections(2)
    (other,) = connections(1, "v")
    assert [debtors.new(who) for who in (first, first, other, second, second)] == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_debtors_are_bounded() -> None:
    debtors = Debtors()
    (first,) = connections(1)
    debtors.new(first)
    for one in connections(5000):
        debtors.new(one)
    assert len(debtors._connections) <= 1000
    # It has been forgotten, but not its user.
    assert debtors.new(first)


def test_users_of_debtors_are_bounded() -> None:
    debtors = Debtors()
    for number in range(USERS_AT_MOST):
        assert not debtors.new(Identity(f"user-{number}", "c", "127.0.0.1"))
    for number in range(100):
        # Users beyond the bound gain nothing: each is treated as one that has used the bucket.
        assert debtors.new(Identity(f"further-{number}", "c", "127.0.0.1"))
    assert len(debtors._users) == USERS_AT_MOST
    assert debtors.new(Identity("user-0", "c", "127.0.0.1")), "nobody has been forgotten"
