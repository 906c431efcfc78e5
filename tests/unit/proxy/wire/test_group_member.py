"""The member of a group in each request of members, in every version."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from proxy.wire.api_keys import JOIN_GROUP, OFFSET_COMMIT
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.group_member import MEMBER_REQUESTS, SESSION_SECONDS, GroupMember, read_group_member
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame, request_type, versions
from tests.support.messages.random_messages import sample

NAMELESS: Final = (OFFSET_COMMIT, 0)
"""A version without members."""


CASES: Final = [(api_key, version) for api_key in sorted(MEMBER_REQUESTS) for version in versions(api_key)]


def read(message: Any, size: int | None = None) -> GroupMember | None:
    """Read the first `size` bytes of a request."""
    frame = request_frame(message)
    reader = Reader([frame], LENGTH_SIZE)
    header = read_request_header(reader)
    return read_group_member([frame[:size]], reader.offset, header.api_key, header.api_version)


def request(api_key: int, version: int, **values: Any) -> Any:
    """A random request, with these values of the fields that the version has."""
    kind = request_type(api_key, version)
    known = {each.name for each in fields(kind)}
    return replace(sample(kind), **{name: value for name, value in values.items() if name in known})


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_the_group_and_the_member_id(api_key: int, version: int) -> None:
    found = read(request(api_key, version, group_id="orders", member_id="member-1"))
    if (api_key, version) == NAMELESS:
        assert found is None
        return
    assert found is not None
    assert (found.group, found.member_id, found.joins) == (b"orders", b"member-1", True)
    if api_key != JOIN_GROUP:
        assert (found.seconds, found.instance_id) == (SESSION_SECONDS, b"")


@pytest.mark.parametrize("version", versions(JOIN_GROUP))
def test_how_long_a_member_stays_and_whether_it_joins(version: int) -> None:
    times = {"session_timeout": timedelta(seconds=40), "rebalance_timeout": timedelta(seconds=300)}
    dynamic = read(request(JOIN_GROUP, version, member_id="", group_instance_id=None, **times))
    static = read(request(JOIN_GROUP, version, member_id="", group_instance_id="a", **times))
    assert dynamic is not None
    assert static is not None
    assert dynamic.seconds == (40 + 300 if version >= 1 else 2 * 40)
    assert dynamic.joins == (version < 4)
    assert static.joins == (version < 4 or version >= 5)
    assert static.instance_id == (b"a" if version >= 5 else b"")


def test_the_head_has_the_client_id() -> None:
    message = request(JOIN_GROUP, 5, group_id="g", member_id="", group_instance_id=None)
    found = read(message)
    assert found is not None
    assert len(request_frame(message)) > found.head_size > found.head_size - len("g") - 14


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_a_request_that_ends_too_early(api_key: int, version: int) -> None:
    message = request(api_key, version, group_id="orders", member_id="member-1")
    frame = request_frame(message)
    assert read(message, frame.index(b"member-1") + 7 if b"member-1" in frame else 20) is None
