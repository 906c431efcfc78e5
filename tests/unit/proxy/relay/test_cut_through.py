"""CutThrough on small frames, each of whose cuts can be tried."""

from dataclasses import replace
from typing import Any

import pytest

from proxy.relay.counters.traffic import Bytes
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Client, Exchange
from proxy.wire.api_keys import FETCH
from proxy.wire.edit import Edit
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import ResponseView
from tests.support.messages.exchanges import fetch_response, fetched, milliseconds
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    is_without_endpoints,
    read_frame,
    response_frame,
    through_proxy,
)
from tests.support.messages.reading import pass_response


def passing(parts: list[bytes], view: ResponseView | None) -> CutThrough:
    exchange = Exchange(1, Client("u", "c", "a", Bytes(), b"c"))
    frame = Frame([parts[0]], sum(map(len, parts)), False)
    return CutThrough(frame, exchange, Reader([parts[0]]), view)


def taken(passing: CutThrough) -> bytes:
    return b"".join(passing.take())


def test_without_a_view_everything_goes_on_at_once() -> None:
    through = passing([b"abcd", b"efgh"], None)
    assert through.has_read(-1)
    assert (through.waiting, taken(through), through.waiting) == (4, b"abcd", 0)
    assert taken(through) == b""
    through.feed([b"ef", b"gh"])
    assert taken(through) == b"efgh"


def test_a_view_that_is_done_lets_everything_pass() -> None:
    view = ResponseView(0, False, 8)
    view.cursor.done = True
    through = passing([b"abcd", b"efgh"], view)
    assert taken(through) == b"abcd"
    through.feed([b"efgh"])
    assert taken(through) == b"efgh"


def test_nothing_goes_on_before_there_is_a_mark() -> None:
    view = ResponseView(0, False, 8)
    through = passing([b"abcd", b"efgh"], view)
    assert (taken(through), through.waiting, through.has_read(0)) == (b"", 4, False)
    reader = Reader([b"abcd"])
    reader.i16()
    view.cursor.mark = reader.mark()
    assert taken(through) == b"ab"
    assert (through.has_read(1), through.has_read(2), through.has_read(-1)) == (True, False, False)
    assert (taken(through), through.waiting) == (b"", 2)


def test_edits_of_a_view_that_is_done_are_made_as_their_bytes_go() -> None:
    view = ResponseView(0, False, 8)
    view.cursor.done = True
    view.edits[:] = [Edit(4, 6, b"XYZ")]
    parts = [b"\0\0\0\x0c", b"abcd", b"efgh", b"ijkl"]
    through = passing([b"".join(parts[:2]), *parts[2:]], view)
    assert taken(through) == b"\0\0\0\x0d" + b"XYZcd"
    assert view.cursor.length_sent
    for part in parts[2:]:
        through.feed([part])
        assert taken(through) == part


def endpoints_response(version: int = 16) -> Any:
    response = fetch_response(version, b"records" * 9)
    node = type(response).__annotations__["node_endpoints"].__args__[0]
    nodes = tuple(node(node_id=at, host=f"{BROKER_HOST}.{at}", port=9092, rack=None) for at in (1, 2))
    return replace(response, node_endpoints=nodes)


@pytest.mark.parametrize("throttle_ms", [0, 1500])
def test_every_cut_of_a_response_with_an_edit_at_its_end(throttle_ms: int) -> None:
    """The length is sent with the first bytes, so the addresses must not change it."""
    response = endpoints_response()
    frame = response_frame(response)
    told = replace(response, throttle_time=milliseconds(throttle_ms))
    for cut in range(10, len(frame)):
        for second in (cut + 1, cut + 30):
            parts = [part for part in (frame[:cut], frame[cut:second], frame[second:]) if part]
            passed, _ = pass_response(FETCH, 16, parts, throttle_ms)
            assert is_without_endpoints(b"".join(passed), told), cut


def test_a_response_in_one_part_is_rewritten() -> None:
    response = endpoints_response()
    passed, _ = pass_response(FETCH, 16, [response_frame(response)])
    assert read_frame(type(response), passed[0]) == through_proxy(response)


@pytest.mark.parametrize("version", [1, 4, 12])
def test_every_cut_of_a_response_with_an_edit_at_its_front(version: int) -> None:
    if version == 1:
        plain = b"\0\0\0\x30" + bytes(3) + b"\1" + bytes(44)
        told = plain[:8] + b"\0\0\x05\xdc" + plain[12:]
    else:
        plain, told = (fetched(1, size=300, throttle_ms=ms, version=version) for ms in (0, 1500))
    for cut in range(10, len(plain)):
        passed, _ = pass_response(FETCH, version, [plain[:cut], plain[cut:]], 1500)
        assert b"".join(passed) == told, cut


def test_bytes_go_on_as_soon_as_they_are_read() -> None:
    response = replace(fetch_response(16, bytes(10_000)), node_endpoints=endpoints_response().node_endpoints)
    frame = response_frame(response)
    passed, view = pass_response(
        FETCH, 16, [frame[at : at + 100] for at in range(0, len(frame), 100)], 0, True
    )
    assert view.cursor.done
    assert [len(part) for part in passed[1:90]] == [100] * 89
    assert [item.size for item in view.items] == [10_000]


def test_what_has_gone_on_is_let_go() -> None:
    response = fetch_response(16, bytes(10_000))
    frame = response_frame(response)
    reader = Reader([frame[:200]], 9)
    view = ResponseView(16, True, len(frame))
    view.cursor.mark = reader.mark()
    through = passing([frame[:200], frame[200:]], view)
    through.feed([b"more"])
    assert through.reader.pieces == [b"more"]
