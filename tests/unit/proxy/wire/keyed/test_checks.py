"""Each request has the check of its API."""

import struct
from dataclasses import replace
from typing import Any

import pytest

from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.keyed.checks import check_names
from proxy.wire.keyed.keyed_arrays import REQUESTS
from proxy.wire.keyed.repeated_names import DESCRIBING
from proxy.wire.keyed.topic_names import NEWEST
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame, request_type
from tests.support.messages.random_messages import sample


def check(message: Any) -> int:
    frame = request_frame(message)
    reader = Reader([frame], LENGTH_SIZE)
    header = read_request_header(reader)
    key, version = header.api_key, header.api_version
    return check_names([frame], reader.offset, key, version, len(frame), True)


def equal(api_key: int, version: int, array: str, number: int) -> Any:
    message = sample(request_type(api_key, version))
    return replace(message, **{array: getattr(message, array)[:1] * number})


@pytest.mark.parametrize(
    ("api_key", "version", "array", "number"),
    [(15, 5, "groups", 12), (3, 12, "topics", 200), (11, 9, "protocols", 200)],
)
def test_equal_names_are_found(api_key: int, version: int, array: str, number: int) -> None:
    assert check(equal(api_key, version, array, 2)) in (0, 2)
    with pytest.raises(Malformed):
        check(equal(api_key, version, array, number))


def test_an_api_has_one_check() -> None:
    assert not {*DESCRIBING} & {*NEWEST}
    assert not {*DESCRIBING, *NEWEST} & {*REQUESTS}


def test_a_subscription_in_a_join_group() -> None:
    owned = struct.pack(">hiii", 1, 0, -1, 200) + b"\0\1t\0\0\0\0" * 200
    message = sample(request_type(11, 9))
    protocol = replace(message.protocols[0], metadata=owned)
    with pytest.raises(Malformed, match="collide"):
        check(replace(message, protocol_type="consumer", protocols=(protocol,)))


def test_other_requests_are_not_read() -> None:
    assert check(sample(request_type(12, 4))) == 0
