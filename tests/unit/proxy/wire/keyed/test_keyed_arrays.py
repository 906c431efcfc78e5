"""Requests whose keys collide are found, in every version, and others are not."""

import random
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import product
from typing import Any, Final
from uuid import UUID

import pytest

from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.keyed.keyed_arrays import (
    ALL_ELEMENTS_AT_MOST,
    ELEMENTS_AT_MOST,
    FEW,
    REQUESTS,
    SMALLEST_BYTES,
    STEPS_FREE,
    UNCHECKED,
    check_keys,
    java_hash,
    moving_cost,
)
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame, request_type
from tests.support.messages.random_messages import sample

PRODUCE, JOIN_GROUP, OFFSETS, ADD_PARTITIONS, SHARE_FETCH, SHARE_ACKNOWLEDGE = 0, 11, 23, 24, 78, 79
FIRST = {PRODUCE: 3, 19: 2, 23: 2, 34: 1, 35: 1, SHARE_FETCH: 1, SHARE_ACKNOWLEDGE: 1}
"""The first version that Kafka 4.3.1 has, if it is not 0."""
KEYED = {
    PRODUCE: ["topic_data"],
    JOIN_GROUP: ["protocols"],
    19: ["topics", "topics.assignments", "topics.configs"],
    23: ["topics"],
    ADD_PARTITIONS: ["v3_and_below_topics", "transactions", "transactions.topics"],
    33: ["resources", "resources.configs"],
    34: ["dirs", "dirs.topics"],
    35: ["topics"],
    37: ["topics"],
    43: ["topic_partitions"],
    44: ["resources", "resources.configs"],
    47: ["topics"],
    57: ["feature_updates"],
    SHARE_FETCH: ["topics", "topics.partitions"],
    SHARE_ACKNOWLEDGE: ["topics", "topics.partitions"],
    80: ["listeners"],
    91: ["topics"],
}


def cases() -> Iterator[tuple[int, int, str]]:
    """Each array of each version that has it."""
    for api_key, arrays in KEYED.items():
        for version in range(FIRST.get(api_key, 0), REQUESTS[api_key].newest + 1):
            for array in arrays:
                if any(
                    field.name == array.partition(".")[0] for field in fields(request_type(api_key, version))
                ):
                    yield api_key, version, array


def check(message: Any, cut: int = 0) -> int:
    """Check a request; `cut`: how many of its last bytes have not arrived."""
    frame = request_frame(message)
    reader = Reader([frame], LENGTH_SIZE)
    header = read_request_header(reader)
    pieces = [frame[: len(frame) - cut]]
    return check_keys(pieces, reader.offset, header.api_key, header.api_version, cut == 0)


def with_elements(message: Any, array: str, number: int, change: Callable[[Any, int], Any]) -> Any:
    """The message with so many elements in an array, or in that of the last element of an outer one."""
    outer, _, inner = array.partition(".")
    element = getattr(message, outer)[0]
    if inner:
        changed = with_elements(element, inner, number, change)
        return replace(message, **{outer: (distinct(element, 7), changed)})
    return replace(message, **{outer: tuple(change(element, place) for place in range(number))})


def same(element: Any, place: int) -> Any:
    return element


def distinct(element: Any, place: int) -> Any:
    """The element with another key."""
    for field in fields(element):
        value = getattr(element, field.name)
        if isinstance(value, str):
            return replace(element, **{field.name: f"{place * 7919:08x}-name"})
        if isinstance(value, UUID):
            return replace(element, **{field.name: UUID(int=random.Random(place).getrandbits(128))})
        if field.name.startswith("partition") and isinstance(value, int):
            return replace(element, **{field.name: type(value)(place)})
    raise ValueError(f"{element} has no key")


@pytest.mark.parametrize(("api_key", "version", "array"), list(cases()))
def test_equal_keys_are_found_in_each_array_of_each_version(api_key: int, version: int, array: str) -> None:
    message = sample(request_type(api_key, version))
    with pytest.raises(Malformed, match="keys are equal"):
        check(with_elements(message, array, UNCHECKED + 1, same))
    assert check(with_elements(message, array, UNCHECKED, same)) == 0


@pytest.mark.parametrize(("api_key", "version", "array"), list(cases()))
def test_other_keys_are_no_error(api_key: int, version: int, array: str) -> None:
    message = sample(request_type(api_key, version))
    assert check(with_elements(message, array, 500, distinct)) == 500


def test_every_request_with_such_an_array_is_known() -> None:
    assert sorted(KEYED) == sorted(REQUESTS)


NESTED: Final = {(case[0], case[2]): case for case in cases() if "." in case[2]}.values()
"""The arrays within others, of the newest version that has them."""


def with_arrays(
    message: Any, array: str, arrays: int, elements: int, change: Callable[[Any, int], Any]
) -> Any:
    """The message with so many small arrays, each in another element of the outer array."""
    outer, _, inner = array.partition(".")
    element = getattr(message, outer)[0]
    [small] = getattr(element, inner)[:1]
    parts = tuple(change(small, place) for place in range(elements))
    within = tuple(replace(distinct(element, place), **{inner: parts}) for place in range(arrays))
    return replace(message, **{outer: within})


@pytest.mark.parametrize(("api_key", "version", "array"), NESTED)
def test_equal_keys_in_very_many_small_arrays_are_found(api_key: int, version: int, array: str) -> None:
    """Each of them takes a broker a few milliseconds, and 512 KiB have room for 1,000."""
    message = sample(request_type(api_key, version))
    with pytest.raises(Malformed, match="keys are equal or collide"):
        check(with_arrays(message, array, 100, UNCHECKED, same))
    check(with_arrays(message, array, 50, UNCHECKED, same))


@pytest.mark.parametrize("elements", [FEW, UNCHECKED])
@pytest.mark.parametrize(("api_key", "version", "array"), NESTED)
def test_other_keys_in_very_many_small_arrays_are_no_error(
    api_key: int, version: int, array: str, elements: int
) -> None:
    message = sample(request_type(api_key, version))
    read = check(with_arrays(message, array, 100, elements, distinct))
    assert 100 * elements // 8 <= read <= 100 * elements


def test_a_long_array_of_usual_names_leaves_no_more_steps_to_the_others() -> None:
    message = sample(request_type(19, 7))
    usual = with_elements(message, "topics", 5000, distinct)
    check(usual)
    small = with_arrays(message, "topics.configs", 100, UNCHECKED, same).topics
    with pytest.raises(Malformed, match="collide"):
        check(replace(usual, topics=(*usual.topics, *small[:99])))


def test_the_elements_of_all_arrays_are_bounded() -> None:
    """Those without keys, too: the event loop serves nobody else while it reads them."""
    message = sample(request_type(OFFSETS, 4))
    [partition] = message.topics[0].partitions[:1]
    topic = replace(message.topics[0], partitions=(partition,) * (ALL_ELEMENTS_AT_MOST // 10))
    topics = tuple(distinct(topic, place) for place in range(10))
    with pytest.raises(Malformed, match="an array of"):
        check(replace(message, topics=topics))
    check(replace(message, topics=topics[:9]))


def join(names: list[str]) -> Any:
    message = sample(request_type(JOIN_GROUP, 9))
    return replace(message, protocols=tuple(replace(message.protocols[0], name=name) for name in names))


def test_different_names_with_the_same_hash_are_found() -> None:
    """Aa and BB have the same in Java."""
    names = ["".join(parts) for parts in product(["Aa", "BB"], repeat=7)]
    assert len({java_hash(name.encode()) for name in names}) == 1
    with pytest.raises(Malformed, match="128 elements whose keys are equal or collide"):
        check(join(names))


def test_names_that_meet_in_the_table_are_found() -> None:
    number = 900
    slots = 2 * number + 1
    found: list[bytes] = []
    at = 0
    while len(found) < number:
        name = b"%x" % at
        if (java_hash(name) & 0x7FFF_FFFF) % slots < 2:
            found.append(name)
        at += 1
    with pytest.raises(Malformed):
        check(join([name.decode() for name in found]))


@pytest.mark.parametrize("pattern", ["topic-%d", "t%05d", "%d", "orders-eu-%d-changelog", "ü-%d"])
@pytest.mark.parametrize("number", [101, 500, 1000, 5000])
def test_usual_names_are_no_error(pattern: str, number: int) -> None:
    assert check(join([pattern % at for at in range(number)])) == number


def numbered(pattern: str, number: int) -> list[str]:
    return [pattern % at for at in range(number)]


def app_names(number: int) -> list[str]:
    return [f"app{at // 26}.{chr(97 + at % 26)}" for at in range(number)]


WORST: Final = [
    *[numbered("events_%d", number) for number in (2600, 6454, 8652)],
    *[numbered("%d", number) for number in (2600, 9123)],
    *[app_names(number) for number in (950, 8652)],
]
"""Numbers of names that collide most, of those up to 10,000."""


@pytest.mark.parametrize("names", WORST, ids=lambda names: f"{names[0]}-{len(names)}")
def test_numbered_names_collide_as_much_as_is_allowed(names: list[str]) -> None:
    """A broker takes up to 1.6 s for these. Clients may have named their topics so."""
    assert check(join(names)) == len(names)


def test_too_many_elements() -> None:
    with pytest.raises(Malformed, match=f"{ELEMENTS_AT_MOST + 1} elements"):
        check(join([str(at) for at in range(ELEMENTS_AT_MOST + 1)]))


@pytest.mark.parametrize("text", ["", "Aa", "topic-1", "ü😀"])
def test_the_hash_code_of_a_string_is_that_of_java(text: str) -> None:
    """It adds up UTF-16 code units."""
    expected = 0
    raw = text.encode("utf-16-be")
    for at in range(0, len(raw), 2):
        expected = (31 * expected + int.from_bytes(raw[at : at + 2], "big")) % 2**32
    assert java_hash(text.encode()) == expected


def test_the_cost_grows_with_the_cube_of_equal_keys() -> None:
    assert moving_cost([7] * 200, 401) == 200 * 200 * 199 // 2
    assert moving_cost(list(range(1000)), 2001) == 0
    assert moving_cost([5] * 400, 801) > STEPS_FREE > moving_cost([5] * 390, 781)


def test_a_part_of_a_request_must_have_all_arrays_with_keys() -> None:
    many = join([str(at) for at in range(500)])
    with pytest.raises(Malformed, match="too large"):
        check(many, cut=2000)
    assert check(join(["a", "b"]), cut=20) == 0


def test_a_request_that_ends_too_early_is_checked_as_far_as_it_goes() -> None:
    frame = request_frame(join(["a"] * 500))
    reader = Reader([frame], LENGTH_SIZE)
    read_request_header(reader)
    with pytest.raises(Malformed, match="equal"):
        check_keys([frame[:-800]], reader.offset, JOIN_GROUP, 9)


def test_unknown_versions_are_not_read() -> None:
    assert check_keys([bytes(5000)], 4, JOIN_GROUP, 10) == 0
    assert check_keys([bytes(5000)], 4, 3, 0) == 0


def test_no_smaller_request_has_more_elements_than_need_no_check() -> None:
    """An element takes three bytes at least: an empty name, an empty array or string, and tags."""
    assert SMALLEST_BYTES <= 3 * UNCHECKED
