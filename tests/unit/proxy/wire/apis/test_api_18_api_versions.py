from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.dispatch import APIS
from proxy.wire.api_keys import API_VERSIONS
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import framed, read_frame, response_frame, response_type, versions
from tests.support.messages.reading import announce, edited, read_response

VERSIONS = versions(API_VERSIONS)


def newest(api_key: int) -> int:
    api = APIS.known[api_key]
    assert api is not None
    return api.newest


AS_IT_IS = [(0, 0, 13), (0, 3, 5), (1, 4, 18), (3, 0, 0), (2, 7, 99), (-1, 0, 99), (127, 0, 1), (500, 0, 99)]
CUT = [
    ((0, 0, newest(0) + 1), (0, 0, newest(0))),
    ((1, 4, 32767), (1, 4, newest(1))),
    ((78, 0, 1), (78, 1, 1)),
    ((79, 0, newest(79) + 7), (79, 1, newest(79))),
    *[((key, 1, newest(key) + 1), (key, 1, newest(key))) for key in (19, 20, 37, 49)],
]
GONE = [(78, 0, 0), (3, newest(3) + 1, newest(3) + 7)]


def response(version: int, ranges: list[tuple[int, int, int]], throttle_ms: int = 0) -> Any:
    message = response_type(API_VERSIONS, version)
    key = message.__annotations__["api_keys"].__args__[0]
    fields: dict[str, Any] = {"throttle_time": milliseconds(throttle_ms)} if version >= 1 else {}
    if version >= 3:
        feature = message.__annotations__["finalized_features"].__args__[0]
        fields["finalized_features_epoch"] = 7
        fields["finalized_features"] = (
            feature(name="transaction.version", max_version_level=2, min_version_level=2),
        )
    keys = tuple(key(api_key=api_key, min_version=low, max_version=high) for api_key, low, high in ranges)
    return message(error_code=ErrorCode.none, api_keys=keys, **fields)


def cut(version: int, offered: list[tuple[int, int, int]]) -> bytes:
    """The frame that the client gets, and the view."""
    frame = response_frame(response(version, offered))
    view = read_response(API_VERSIONS, version, [frame])
    return edited([frame], view)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("offered", AS_IT_IS)
def test_what_the_proxy_reads_or_does_not_know_is_offered_as_it_is(
    version: int, offered: tuple[int, int, int]
) -> None:
    assert cut(version, [offered]) == response_frame(response(version, [offered]))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("offered", "kept"), CUT)
def test_what_the_proxy_reads_in_part_is_cut(
    version: int, offered: tuple[int, int, int], kept: tuple[int, int, int]
) -> None:
    assert cut(version, [offered]) == response_frame(response(version, [kept]))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("offered", GONE)
def test_what_the_proxy_cannot_read_at_all_is_gone(version: int, offered: tuple[int, int, int]) -> None:
    rest = (2, 0, 9)
    for ranges in ([offered], [offered, rest], [rest, offered], [rest, offered, rest, offered]):
        wanted = response(version, [given for given in ranges if given == rest])
        assert cut(version, ranges) == response_frame(wanted)


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_at_once(version: int) -> None:
    ranges = [
        *AS_IT_IS,
        *GONE,
        *[offered for offered, kept in CUT],
        *[(key, 0, 99) for key in range(200, 400)],
    ]
    wanted = [*AS_IT_IS, *[kept for offered, kept in CUT], *[(key, 0, 99) for key in range(200, 400)]]
    frame = cut(version, ranges)
    assert read_frame(response_type(API_VERSIONS, version), frame) == response(version, wanted)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wait_is_known_from_v1_on(version: int) -> None:
    frame = response_frame(response(version, [(2, 0, 9)], 1234))
    view = read_response(API_VERSIONS, version, [frame])
    if version == 0:
        assert view.throttle_at == -1
    else:
        assert view.throttle_time_ms == 1234
        announce(view, 5)
        assert edited([frame], view) == response_frame(response(version, [(2, 0, 9)], 5))


@pytest.mark.parametrize("version", [3, 4])
def test_a_broker_that_does_not_know_the_version_responds_in_v0s_form(version: int) -> None:
    """KIP-511: error 35 and, since Kafka 2.4, the versions of ApiVersions; there is no wait in it."""
    body = b"\0\x23" + b"\0\0\0\3" + bytes.fromhex("001200000003" + "000000000063" + "004e00000000")
    frame = framed(b"\0\0\0\1" + body)
    view = read_response(API_VERSIONS, version, [frame])
    assert view.throttle_at == -1
    wanted = b"\0\x23" + b"\0\0\0\2" + bytes.fromhex("001200000003" + f"00000000{newest(0):04x}")
    assert edited([frame], view) == framed(b"\0\0\0\1" + wanted)


@pytest.mark.parametrize("version", [3, 4])
def test_the_oldest_brokers_response_with_the_error_alone(version: int) -> None:
    frame = framed(b"\0\0\0\1" + b"\0\x23" + b"\0\0\0\0")
    assert read_response(API_VERSIONS, version, [frame]).edits == []


def test_the_response_header_never_has_tags() -> None:
    api = APIS.read[API_VERSIONS]
    assert api is not None
    assert not any(api.flexible_response_header(version) for version in range(10))
