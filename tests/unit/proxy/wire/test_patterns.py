"""Patterns that would occupy a broker or exhaust its memory are found, and others pass."""

from dataclasses import replace
from typing import Any

import pytest

from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.patterns import (
    BYTES_AT_MOST,
    COPIES_AT_MOST,
    DEPTH_AT_MOST,
    NAMES_AT_MOST,
    VERSIONS,
    PatternSize,
    check_pattern,
)
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame, request_type, versions
from tests.support.messages.random_messages import sample

LIST_TRANSACTIONS, CONSUMER_GROUP_HEARTBEAT = 66, 68
FIELDS = {
    LIST_TRANSACTIONS: ("transactional_id_pattern", "state_filters"),
    CONSUMER_GROUP_HEARTBEAT: ("subscribed_topic_regex", "subscribed_topic_names"),
}
"""The pattern, and the strings before it."""
HOSTILE = [
    "(((a{100}){100}){100}){100}",
    "(?:(?:(?:){1000}){1000}){1000}",
    "a{501}",
    "a{0,501}",
    "a{501,}",
    "a{500}b{2}",
    "[(]{501}",
    "[]{]{501}",
    "[[:alpha:]{1}]{501}",
    "\\({501}",
    "\\pN{501}",
    "\\p{Greek}{501}",
    "\\x{41}{501}",
    "\\Q(\\E{501}",
    "a?" * 1001,
    "(?:x{2}){2}" * 100,
    "a{300}(?i){3}",
    "(?P<i>a{30}){30}",
    "(?<n>a{30}){30}",
    "(" * 201 + ")" * 201,
    "(?i)\u1c80",
    "(?s-i:[B-\\x{1c80}])",
    "(?i)[\\pL]",
    "(?i)\\PL",
]
USUAL = [
    "orders.*",
    "^[a-z0-9]{1,249}\\.[a-z0-9]{1,249}$",
    "(?i)(orders|payments)-[a-z]+",
    "|".join(f"tenant-7.events-{number}" for number in range(150)),
    "(?P<country>ü|é)-\\p{L}{2,8}",
    "a{,5000}b{x}{",
    "a\\{900}",
    "[{9}00]",
    "\\Q{1000}{1000}",
    "\\Q(a{1000}){1000}\\E",
    "",
    "(((",
    ")))",
    "[[:",
    "\\",
    "(?",
    "(?P<",
]


def request(api_key: int, pattern: str | None, **more: Any) -> Any:
    message = sample(request_type(api_key, VERSIONS[api_key][1]))
    return replace(message, **{FIELDS[api_key][0]: pattern}, **more)


def check(message: Any, cut: int = 0, complete: bool = True) -> int:
    """Check a request without its last `cut` bytes."""
    frame = request_frame(message)
    reader = Reader([frame], LENGTH_SIZE)
    header = read_request_header(reader)
    pieces = [frame[: len(frame) - cut]]
    return check_pattern(pieces, reader.offset, header.api_key, header.api_version, complete)


@pytest.mark.parametrize("api_key", FIELDS)
@pytest.mark.parametrize("pattern", HOSTILE)
def test_patterns_that_would_occupy_a_broker(api_key: int, pattern: str) -> None:
    with pytest.raises(Malformed, match="a pattern that"):
        check(request(api_key, pattern))


@pytest.mark.parametrize("api_key", FIELDS)
@pytest.mark.parametrize("pattern", USUAL)
def test_other_patterns_pass(api_key: int, pattern: str) -> None:
    assert check(request(api_key, pattern)) >= len(pattern)


@pytest.mark.parametrize("api_key", FIELDS)
def test_a_request_without_a_pattern(api_key: int) -> None:
    message = request(api_key, None)
    assert check(message) == len(getattr(message, FIELDS[api_key][1]) or ())


@pytest.mark.parametrize("api_key", FIELDS)
def test_a_pattern_that_is_too_long(api_key: int) -> None:
    check(request(api_key, "a" * BYTES_AT_MOST))
    with pytest.raises(Malformed, match=f"a pattern of {BYTES_AT_MOST + 1} bytes"):
        check(request(api_key, "a" * (BYTES_AT_MOST + 1)))


@pytest.mark.parametrize("api_key", FIELDS)
def test_very_many_names_before_the_pattern(api_key: int) -> None:
    names = {FIELDS[api_key][1]: ("",) * (NAMES_AT_MOST + 1)}
    with pytest.raises(Malformed, match=f"{NAMES_AT_MOST + 1} names"):
        check(request(api_key, "a", **names))


@pytest.mark.parametrize("api_key", FIELDS)
def test_every_version_with_a_pattern_is_read(api_key: int) -> None:
    """A version that kio adds must be added here."""
    having = [
        each
        for each in versions(api_key)
        if FIELDS[api_key][0] in request_type(api_key, each).__dataclass_fields__
    ]
    assert (having[0], having[-1]) == VERSIONS[api_key]
    for version in set(versions(api_key)) - set(having):
        assert check(sample(request_type(api_key, version))) == 0


@pytest.mark.parametrize("api_key", FIELDS)
def test_a_request_that_ends_too_early(api_key: int) -> None:
    """A broker does not execute it; but if the rest is to come, nothing may be forwarded."""
    message = request(api_key, HOSTILE[0])
    frame = request_frame(message)
    cut = len(frame) - frame.index(HOSTILE[0].encode()) - 1
    assert check(message, cut) == 0
    with pytest.raises(Malformed, match="too large for its pattern"):
        check(message, cut, complete=False)


def test_the_copies_of_nested_groups_are_multiplied() -> None:
    assert PatternSize(b"(?:a{3}){4}").copies == 5 + (6 + 2 + 1) * 4 - 8
    assert PatternSize(b"a" * BYTES_AT_MOST).copies == 0
    assert PatternSize(HOSTILE[0].encode()).copies > COPIES_AT_MOST


def test_groups_that_are_closed_do_not_add_up() -> None:
    assert PatternSize(b"(a)" * (DEPTH_AT_MOST + 1)).deepest == 1
