from itertools import product

import pytest

from proxy.relay.modes import NAMES, READING, REQUEST_TRANSITIONS, RESPONSE_TRANSITIONS, Mode, modes_after

TABLES = pytest.mark.parametrize("transitions", [REQUEST_TRANSITIONS, RESPONSE_TRANSITIONS])


@TABLES
def test_the_table_decides_which_changes_there_are(transitions: dict[tuple[int, int], str]) -> None:
    for before, after in product(range(len(NAMES)), repeat=2):
        mode = Mode(modes_after(transitions))
        mode.now = before
        if (before, after) in transitions:
            mode.change(after)
            assert mode.now == after
        else:
            with pytest.raises(AssertionError, match=f"from {NAMES[before]} to {NAMES[after]}"):
                mode.change(after)
            assert mode.now == before


@TABLES
def test_every_mode_begins_with_reading_and_but_for_the_last_ends_there(
    transitions: dict[tuple[int, int], str],
) -> None:
    entered = {after for _, after in transitions} - {READING}
    assert {after for before, after in transitions if before == READING} == entered
    left = {before for before, _ in transitions} - {READING}
    assert {before for before, after in transitions if after == READING} == left
    assert {NAMES[mode] for mode in entered - left} <= {"closing"}
