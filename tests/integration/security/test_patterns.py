"""How large the programs are that RE2/J makes of generated patterns: no larger than the proxy expects."""

from random import Random
from typing import Final

import pytest

from proxy.wire.errors import Malformed
from proxy.wire.patterns import PatternSize, check_regex
from tests.support.kafka.tool_server import run_java

pytestmark = pytest.mark.kafka
SEEDS: Final = 6000
FREE: Final = 8
"""Instructions of a program that are no part of the pattern."""
PARTS: Final = (
    *("a", "b", "|", "(", "(", "(?:", ")", ")", ")", "(?P<i>", "(?<n>", "(?i)", "(?i:", "(?s-i)"),
    *("*", "+", "?", "*?", "{2}", "{3,}", "{0,4}", "{10}", "{25}", "{,5}", "{x}", "{40}{1}", "{", "}"),
    *("[", "]", "[a-z]", "[^]a]", "[]}{]", "[a[:alpha:](]", "[[:^digit:]\\]]", "[\\Q]", "[[:]"),
    *("\\(", "\\\\", "\\Q(\\E", "\\Q\\E", "\\Qa{9}\\E", "\\E", "\\pN", "\\p{Greek}", "\\PL", "\\x{41}"),
    *("\\x41", "\\141", "\\d", "\\W", "\\b", "^", "$", ".", "\\A", "\\z", "\\", "\u1c80", "é", "\U0001f600"),
)


def pattern(random: Random) -> bytes:
    return "".join(random.choice(PARTS) for _ in range(random.choice((3, 5, 8, 12, 20)))).encode()


def accepted(raw: bytes) -> bool:
    try:
        check_regex(raw, 66)
    except Malformed:
        return False
    return True


def test_no_program_is_larger_than_expected() -> None:
    """Those that the proxy rejects could run without end here, too."""
    patterns = [made for seed in range(SEEDS) if accepted(made := pattern(Random(seed)))]
    sizes = run_java("Patterns", given="".join(f"{made.hex()}\n" for made in patterns))
    compiled = [int(size) for size in sizes if size != "REJECTED"]
    assert len(sizes) == len(patterns)
    assert len(patterns) > SEEDS // 2
    assert len(compiled) > SEEDS // 20
    for made, size in zip(patterns, sizes, strict=True):
        assert size == "REJECTED" or int(size) <= len(made) + PatternSize(made).copies + FREE, made
