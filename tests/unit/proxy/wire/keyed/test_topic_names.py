"""Requests whose topics would occupy a broker when it builds its response."""

import random
from dataclasses import fields, replace
from itertools import product
from typing import Any, Final
from uuid import UUID

import pytest

from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.keyed.keyed_arrays import UNCHECKED, java_hash, moving_cost
from proxy.wire.keyed.topic_names import (
    NEWEST,
    STEPS_PER_TOPIC,
    TOPICS_AT_MOST,
    UNNAMED_AT_MOST,
    check_topic_names,
    growing_cost,
)
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame, request_type, versions
from tests.support.messages.random_messages import sample

METADATA, DELETE_TOPICS, TOPIC_PARTITIONS = 3, 20, 75
CASES: Final = [(api_key, version) for api_key in NEWEST for version in versions(api_key)]
BY_ID: Final = [(METADATA, 12), (METADATA, 13), (DELETE_TOPICS, 6)]
NO_ID: Final = UUID(int=0)


def check(message: Any, cut: int = 0) -> int:
    """Check a request; `cut`: how many of its last bytes have not arrived."""
    frame = request_frame(message)
    reader = Reader([frame], LENGTH_SIZE)
    header = read_request_header(reader)
    pieces = [frame[: len(frame) - cut]]
    return check_topic_names(pieces, reader.offset, header.api_key, header.api_version, cut == 0)


def request(api_key: int, version: int, names: list[str | None]) -> Any:
    """A request for topics; None: by an id."""
    message = sample(request_type(api_key, version))
    if api_key == DELETE_TOPICS and version < 6:
        return replace(message, topic_names=tuple(names))
    element = message.topics[0]
    has_id = "topic_id" in {field.name for field in fields(element)}
    topics = []
    for place, name in enumerate(names):
        ids = {"topic_id": UUID(int=place + 1) if name is None else NO_ID} if has_id else {}
        topics.append(replace(element, name=name, **ids))
    return replace(message, topics=tuple(topics))


def colliding(number: int, slots: int) -> list[str | None]:
    """Different names whose elements meet in a table of so many slots."""
    found: list[str | None] = []
    at = 0
    while len(found) < number:
        if (java_hash(b"%x" % at) & 0x7FFF_FFFF) % slots < 3:
            found.append(f"{at:x}")
        at += 1
    return found


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_equal_names_are_found_in_every_version(api_key: int, version: int) -> None:
    assert check(request(api_key, version, ["t"] * UNCHECKED)) == 0
    with pytest.raises(Malformed, match="names are equal"):
        check(request(api_key, version, ["t"] * (UNCHECKED + 1)))


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_other_names_are_no_error(api_key: int, version: int) -> None:
    assert check(request(api_key, version, [f"topic-{at}" for at in range(3000)])) == 3000


@pytest.mark.parametrize(("api_key", "version"), BY_ID)
def test_topics_by_id_are_bounded(api_key: int, version: int) -> None:
    """A broker's response has no names for those that it does not have: their keys are equal."""
    assert check(request(api_key, version, [None] * UNNAMED_AT_MOST)) == 0
    with pytest.raises(Malformed, match="topics by id"):
        check(request(api_key, version, [None] * (UNNAMED_AT_MOST + 1)))


def test_different_names_with_the_same_hash_are_found() -> None:
    names: list[str | None] = ["".join(parts) for parts in product(["Aa", "BB"], repeat=7)]
    with pytest.raises(Malformed, match="128 topics whose names are equal or collide"):
        check(request(METADATA, 12, names))


@pytest.mark.parametrize("others_first", [True, False])
def test_names_that_meet_in_a_table_that_grows_are_found(others_first: bool) -> None:
    """Whatever the order in which a broker adds them: it keeps the topics in a set before."""
    slots = 3071
    collide = colliding(slots // 2, slots)
    others: list[str | None] = [f"other-{at}" for at in range(slots // 2)]
    names = [*others, *collide] if others_first else [*collide, *others]
    with pytest.raises(Malformed, match="collide"):
        check(request(METADATA, 12, names))


PATTERNS: Final = ["events_%d", "topic-%d", "%d", "t%05d", "orders-eu-%d-changelog", "ü-%d"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("number", [101, 500, 3100, 6200, 12_300, 20_000])
def test_numbered_names_are_far_below_the_bound(pattern: str, number: int) -> None:
    hashes = [java_hash((pattern % at).encode()) for at in range(number)]
    assert growing_cost(hashes) <= number * STEPS_PER_TOPIC / 2


def test_the_cost_is_that_of_all_tables() -> None:
    """One of 383 slots grows when the 191st element is added, one of 767 with the 383rd."""
    assert growing_cost([7] * 100) == 0
    assert growing_cost([7] * 190) == 0
    assert growing_cost([7] * 191) == moving_cost([7] * 96, 383)
    assert growing_cost([7] * 191 + list(range(192))) >= moving_cost([7] * 64, 383)


def test_the_table_of_topics_by_id_grows_with_one_more() -> None:
    """With Kafka 4.3.1, 766 topics by id took 0.08 s of a broker's processor time, and 767 took 0.57 s."""
    grows_with = {(5 + 1) * 2**doubled // 2 - 1 for doubled in range(12)}
    assert grows_with >= {2, 5, 191, 383}  # of 5, 11, 383 and 767 slots
    assert UNNAMED_AT_MOST + 1 in grows_with


def test_elements_are_moved_as_in_a_table_that_does_not_grow() -> None:
    """Counting them gives the same steps as sorting them, also behind the last slot."""
    some = random.Random(1)
    for _ in range(50):
        dense = [some.randrange(150) for _ in range(100)]
        hashes = [some.choice([each, 766 - each, some.randrange(1 << 32)]) for each in dense * 4]
        tables = (383, 767)  # the smaller ones have at most UNCHECKED elements when they grow
        assert growing_cost(hashes) == sum(_dearest(hashes, slots) for slots in tables)


def _dearest(hashes: list[int], slots: int) -> int:
    parts = -(-len(hashes) // (slots // 2 - 1))
    return max(moving_cost(hashes[first::parts], slots) for first in range(parts))


def test_topics_are_bounded() -> None:
    names: list[str | None] = [f"{at:x}" for at in range(TOPICS_AT_MOST + 1)]
    with pytest.raises(Malformed, match="20001 topics"):
        check(request(METADATA, 12, names))


def test_a_part_of_a_request_must_have_all_topics() -> None:
    many = request(METADATA, 12, [f"topic-{at}" for at in range(500)])
    with pytest.raises(Malformed, match="too large"):
        check(many, cut=2000)


def test_all_topics_and_unknown_versions() -> None:
    assert check(replace(sample(request_type(METADATA, 12)), topics=None)) == 0
    assert check_topic_names([bytes(5000)], 4, METADATA, 14) == 0
    assert check_topic_names([bytes(5000)], 4, 1, 0) == 0


def test_every_version_is_known() -> None:
    assert all(max(versions(api_key)) == newest for api_key, newest in NEWEST.items())
