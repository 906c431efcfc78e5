"""A part that shrinks holds when it is read; one that grows, when all have read it."""

from proxy.quota.sharing.in_force import PARTS_AT_MOST, InForce


def test_at_first_there_is_nothing() -> None:
    assert InForce().least(0) == 0.0


def test_a_part_grows_when_all_have_read_the_record() -> None:
    parts = InForce()
    parts.take(7, 0.5, 0.5)
    assert parts.least(7) == 0.0
    assert parts.least(8) == 0.5


def test_a_part_shrinks_at_once() -> None:
    parts = InForce()
    parts.take(7, 0.5, 0.5)
    parts.take(9, 0.25, 0.25)
    assert parts.least(8) == 0.25


def test_the_least_over_all_prefixes_that_a_process_may_have_read_counts() -> None:
    parts = InForce()
    for offset, part in ((1, 0.5), (2, 0.1), (3, 0.4)):
        parts.take(offset, part, part)
    assert parts.least(2) == 0.1
    assert parts.least(3) == 0.1
    assert parts.least(4) == 0.4


def test_it_is_known_when_a_larger_part_applies() -> None:
    parts = InForce()
    for offset, part in ((1, 0.5), (2, 0.1), (3, 0.4)):
        parts.take(offset, part, part)
    assert [parts.grows(read_by_all) for read_by_all in (2, 3, 4, 5)] == [True, False, True, False]
    assert len(parts) == 1


def test_the_last_part_of_one_record_counts() -> None:
    parts = InForce()
    parts.take(1, 0.5, 0.5)
    parts.take(1, 0.25, 0.25)
    assert parts.least(2) == 0.25


def test_credit_alone_is_a_change() -> None:
    parts = InForce()
    parts.take(7, 0.5, 0.55)
    parts.take(8, 0.5, 0.45)
    parts.take(9, 0.5, 0.5)
    assert [parts.least_settled(read_by_all) for read_by_all in (7, 8, 9, 10)] == [0.0, 0.45, 0.45, 0.5]
    assert parts.least(10) == 0.5


def test_a_copy_goes_on_by_itself() -> None:
    parts = InForce()
    parts.take(1, 0.5, 0.4)
    copy = parts.copy()
    copy.take(2, 0.25, 0.2)
    assert (parts.least(2), parts.least_settled(2)) == (0.5, 0.4)
    assert (copy.least(2), copy.least_settled(2)) == (0.25, 0.2)


def test_many_parts_that_not_all_have_read_become_one_and_none_is_too_large() -> None:
    parts = InForce()
    parts.take(0, 0.2, 0.2)
    for offset in range(1, 10 * PARTS_AT_MOST):
        parts.take(offset, 0.5 + offset % 2 / 10, 0.4 + offset % 2 / 10)
    assert len(parts) == PARTS_AT_MOST
    assert parts.copy().least_settled(10 * PARTS_AT_MOST - 1) == 0.4
    assert parts.least(1) == 0.0
    assert parts.least(10 * PARTS_AT_MOST - 1) == 0.5
    assert parts.least(10 * PARTS_AT_MOST) == 0.6
