"""The parts that a process has had, and their mean."""

from random import Random

import pytest

from proxy.quota.measure.part_history import STEP_SECONDS, PartHistory

KEPT = 12.0


def test_the_first_part_counts_as_that_of_all_time_before() -> None:
    parts = PartHistory(0.25)
    assert parts.mean(10.0, 5.0) == parts.part == 0.25
    parts.change(0.75, 5.0, KEPT)
    assert (parts.part, parts.mean(10.0, 5.0)) == (0.75, 0.25)
    assert parts.mean(10.0, 10.0) == pytest.approx(0.5)
    assert parts.mean(10.0, 15.0) == parts.mean(10.0, 99.0) == 0.75


def test_a_time_before_the_last_change_counts_as_that_of_the_change() -> None:
    parts = PartHistory(0.25)
    parts.change(0.75, 5.0, KEPT)
    parts.change(0.5, 4.0, KEPT)
    assert parts.mean(10.0, 15.0) == pytest.approx(0.5)


def test_the_means_of_processes_add_up_to_that_of_the_sum_of_their_parts() -> None:
    """However often each part changes: one of them every 0.03 s, the others at other times."""
    random = Random(1)
    one, other = PartHistory(1.0), PartHistory(0.0)
    given: list[tuple[float, float]] = []
    now = 100.0
    while now < 130.0:
        part = random.uniform(0.01, 0.99)
        one.change(part, now, KEPT)
        given.append((now, part))
        if random.random() < 0.2:
            other.change(1.0 - part, now, KEPT)
        now += 0.03
    ends = [at for at, _ in given[1:]] + [now]
    exact = sum(
        part * max(end - max(at, now - 10.0), 0.0) for (at, part), end in zip(given, ends, strict=True)
    )
    assert one.mean(10.0, now) == pytest.approx(exact / 10.0, abs=STEP_SECONDS / 10.0)


def test_a_part_that_goes_to_another_process_in_many_steps_is_counted_once() -> None:
    """The mean of the first process becomes smaller by as much as that of the other one grows, although the
    first process has many changes.
    """
    one, other = PartHistory(1.0), PartHistory(0.01)
    for step in range(50):
        one.change(0.5 - 0.001 * (step % 2), 100.0 + 0.2 * step, KEPT)
    other.change(0.5, 100.0, KEPT)
    for now in (102.0, 105.0, 109.8):
        assert one.mean(10.0, now) + other.mean(10.0, now) == pytest.approx(1.0, abs=0.015)


def test_it_remembers_few_changes() -> None:
    parts = PartHistory(1.0)
    for step in range(10_000):
        parts.change(0.5 + 0.1 * (step % 3), 0.03 * step, KEPT)
    assert len(parts) <= 2 * (KEPT / STEP_SECONDS + 2)
    assert parts.mean(10.0, 300.0) == pytest.approx(0.6, abs=0.01)
