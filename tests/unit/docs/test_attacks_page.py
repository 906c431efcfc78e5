"""Each attack in docs/attacks.md has its defense, what Kafka does, and tests that exist."""

import re
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[2]
PAGE: Final = TESTS.parent / "docs/attacks.md"
ATTACKS: Final = [
    line.strip("| ").split(" | ")
    for line in PAGE.read_text().partition("## Each attack")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| attack ")
]
TEST: Final = re.compile(r"`([\w/]+(?:\.py)?)`(?: \(([^)]*)\))?")
STORIES: Final = TESTS / "support/simulations/debt_attacks.py"
"""It has the names of the attacks with debts."""


def sources(path: Path) -> str:
    files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    return "\n".join(file.read_text() for file in [*files, STORIES])


@pytest.mark.parametrize("row", ATTACKS, ids=lambda row: row[0][:40])
def test_each_named_test_exists(row: list[str]) -> None:
    attack, defense, tests, kafka = row
    assert attack
    assert defense
    assert kafka
    named = TEST.findall(tests)
    assert named or "bench.attacks" in tests
    folder = TESTS
    for name, parts in named:
        path = (TESTS if "/" in name else folder) / name
        assert path.exists(), name
        folder = path.parent
        text = sources(path)
        for part in re.findall(r"`([^`]+)`", parts):
            assert part in text or part.replace("_", " ") in text, f"{name} has no test {part}"
