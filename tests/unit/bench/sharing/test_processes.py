"""The figures of shared limits meet what the documentation promises."""

import pytest

from bench.sharing.processes import (
    DEMANDS,
    alternatives,
    flow,
    report_bytes,
    seconds_to_join,
    seconds_to_move,
    seconds_to_move_some,
    seconds_to_take_over,
    story,
)


@pytest.mark.parametrize("demand", DEMANDS)
def test_the_limit_gets_through(demand: str) -> None:
    found = flow(3, DEMANDS[demand])
    assert 0.98 <= found.mean <= 1.02
    assert found.deviation <= 0.15
    assert found.most <= 1.05


@pytest.mark.parametrize("seed", range(5))
def test_changes_take_effect_in_time(seed: int) -> None:
    assert seconds_to_move(seed) <= 1.0
    assert seconds_to_move_some(seed) <= 1.0
    assert seconds_to_take_over(seed) <= 3.0
    assert seconds_to_join(seed) <= 0.6


def test_reports_are_small() -> None:
    assert report_bytes(20) < 10_000


def test_the_pictures_show_what_happens() -> None:
    *_, together = story().lines
    assert max(together.values[3:]) < 1.3
    shared, whole, third = alternatives().lines
    assert max(shared.values[3:]) < 1.3
    assert max(whole.values) > 2.5
    assert max(third.values[3:15]) < 0.5
