"""Requests that name a group, a partition or a transaction again and again are found, in every version."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final
from uuid import UUID

import pytest

from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.keyed.repeated_names import DESCRIBING, NAMES_AT_MOST, REPEATS_AT_MOST, check_repeats
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame, request_type, versions
from tests.support.messages.random_messages import sample

OFFSET_FETCH, DESCRIBE_GROUPS, DESCRIBE_PRODUCERS, SHARE_GROUP_OFFSETS = 9, 15, 61, 90
ARRAYS: Final = {
    OFFSET_FETCH: [
        *("groups", "groups.topics", "groups.topics.partition_indexes"),
        *("topics", "topics.partition_indexes"),
    ],
    DESCRIBE_GROUPS: ["groups"],
    DESCRIBE_PRODUCERS: ["topics", "topics.partition_indexes"],
    65: ["transactional_ids"],
    69: ["group_ids"],
    77: ["group_ids"],
    89: ["group_ids"],
    SHARE_GROUP_OFFSETS: ["groups", "groups.topics", "groups.topics.partitions"],
}


def cases() -> Iterator[tuple[int, int, str]]:
    """Each array of each version that has it."""
    for api_key, arrays in ARRAYS.items():
        for version in versions(api_key):
            for array in arrays:
                if array.partition(".")[0] in {each.name for each in fields(request_type(api_key, version))}:
                    yield api_key, version, array


def check(message: Any, cut: int = 0) -> int:
    """Check a request; `cut`: how many of its last bytes have not arrived."""
    frame = request_frame(message)
    reader = Reader([frame], LENGTH_SIZE)
    header = read_request_header(reader)
    pieces = [frame[: len(frame) - cut]]
    return check_repeats(pieces, reader.offset, header.api_key, header.api_version, cut == 0)


def with_array(message: Any, array: str, elements: list[Any] | None, number: int = 0) -> Any:
    """The message with these elements in an array, or with the first of its elements `number` times."""
    outer, _, inner = array.partition(".")
    element = getattr(message, outer)[0]
    if inner:
        return replace(message, **{outer: (with_array(element, inner, elements, number),)})
    return replace(
        message, **{outer: tuple([without_arrays(element)] * number if elements is None else elements)}
    )


def different(element: Any, place: int) -> Any:
    """The element with another key."""
    if isinstance(element, str):
        return f"group-{place}"
    if isinstance(element, int):
        return type(element)(place)
    for field in fields(element):
        value = getattr(element, field.name)
        if isinstance(value, str):
            return replace(element, **{field.name: f"name-{place}"})
        if isinstance(value, UUID):
            return replace(element, **{field.name: UUID(int=place + 1)})
    raise ValueError(f"{element} has no key")


def without_arrays(element: Any) -> Any:
    """The element without the names in it."""
    if isinstance(element, str | int):
        return element
    arrays = [field.name for field in fields(element) if isinstance(getattr(element, field.name), tuple)]
    return replace(element, **dict.fromkeys(arrays, ()))


def first_of(message: Any, array: str) -> Any:
    for part in array.split("."):
        message = getattr(message, part)[0]
    return message


@pytest.mark.parametrize(("api_key", "version", "array"), list(cases()))
def test_repeats_are_found_in_each_array_of_each_version(api_key: int, version: int, array: str) -> None:
    message = sample(request_type(api_key, version))
    check(with_array(message, array, None, REPEATS_AT_MOST + 1))
    with pytest.raises(Malformed, match="again and again"):
        check(with_array(message, array, None, REPEATS_AT_MOST + 2))


@pytest.mark.parametrize(("api_key", "version", "array"), list(cases()))
def test_different_names_are_no_error(api_key: int, version: int, array: str) -> None:
    message = sample(request_type(api_key, version))
    element = without_arrays(first_of(message, array))
    check(with_array(message, array, [different(element, place) for place in range(2000)]))


def test_every_request_has_its_arrays_tested_up_to_the_newest_version() -> None:
    assert sorted(ARRAYS) == sorted(DESCRIBING)
    assert all(max(versions(api_key)) <= DESCRIBING[api_key].newest for api_key in DESCRIBING)


def test_the_repeats_of_all_arrays_add_up() -> None:
    """One topic in each of a hundred groups may have a thousand equal partitions otherwise."""
    message = sample(request_type(OFFSET_FETCH, 9))
    group = with_array(message.groups[0], "topics.partition_indexes", None, 2)
    groups = [different(group, place) for place in range(REPEATS_AT_MOST + 1)]
    check(replace(message, groups=tuple(groups[:-1])))
    with pytest.raises(Malformed, match="again and again"):
        check(replace(message, groups=tuple(groups)))


def test_names_are_bounded() -> None:
    """The event loop serves nobody else while it reads them."""
    message = sample(request_type(DESCRIBE_GROUPS, 5))
    names = [f"{place:x}" for place in range(NAMES_AT_MOST + 1)]
    assert check(replace(message, groups=tuple(names[:-1]))) == NAMES_AT_MOST
    with pytest.raises(Malformed, match="45001 names"):
        check(replace(message, groups=tuple(names)))


def test_very_many_partitions_are_no_error() -> None:
    """512 KiB have room for 130,000."""
    message = sample(request_type(OFFSET_FETCH, 7))
    check(with_array(message, "topics.partition_indexes", list(range(130_000))))


def test_all_topics_of_a_group() -> None:
    message = sample(request_type(OFFSET_FETCH, 8))
    group = replace(message.groups[0], topics=None)
    check(replace(message, groups=(group,)))
    with pytest.raises(Malformed, match="again and again"):
        check(replace(message, groups=(group,) * 100))


def test_a_part_of_a_request_must_have_all_names() -> None:
    message = sample(request_type(DESCRIBE_GROUPS, 5))
    groups = replace(message, groups=tuple(f"group-{place}" for place in range(100)))
    with pytest.raises(Malformed, match="too large"):
        check(groups, cut=50)


def test_a_request_that_ends_too_early_is_checked_as_far_as_it_goes() -> None:
    frame = request_frame(replace(sample(request_type(DESCRIBE_GROUPS, 5)), groups=("a",) * 100))
    reader = Reader([frame], LENGTH_SIZE)
    read_request_header(reader)
    check_repeats([frame[: reader.offset + 8]], reader.offset, DESCRIBE_GROUPS, 5)
    with pytest.raises(Malformed, match="again"):
        check_repeats([frame[:-20]], reader.offset, DESCRIBE_GROUPS, 5)


def test_unknown_versions_and_other_requests_are_not_read() -> None:
    assert check_repeats([bytes(5000)], 4, DESCRIBE_GROUPS, 7) == 0
    assert check_repeats([bytes(5000)], 4, 3, 0) == 0
