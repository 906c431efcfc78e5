"""Reads frames as the relay does, for tests of parsers."""

from typing import Final

from proxy.admin.dispatch import APIS
from proxy.relay.counters.traffic import Bytes
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Client, Exchange
from proxy.wire.apis.api import Api, read_request_header
from proxy.wire.apis.api_01_fetch import after_bounds
from proxy.wire.edit import LENGTH_SIZE, Edit, apply, i32, insert, with_length
from proxy.wire.errors import Short
from proxy.wire.fetch.request import FetchRequest, read_fetch_request
from proxy.wire.fetch.rewrite import FetchRewrite
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader, text
from proxy.wire.views import Item, RequestView, ResponseView, View
from tests.support.messages.kio_messages import Ports

PORTS: Final = Ports()


def api_of(api_key: int) -> Api:
    api = APIS.read[api_key]
    assert api is not None
    return api


def read_request(pieces: list[bytes], want_items: bool = True) -> RequestView:
    """The view of a whole request."""
    reader = Reader(pieces, LENGTH_SIZE)
    header = read_request_header(reader)
    api = api_of(header.api_key)
    view = RequestView(
        header.api_key,
        header.api_version,
        header.correlation_id,
        text(header.raw_client_id),
        sum(map(len, pieces)) - LENGTH_SIZE,
        flexible=header.api_version >= api.flexible_from,
        want_items=want_items,
    )
    if view.flexible:
        reader.skip_tags()
    api.read_request(reader, view)
    assert view.cursor.done
    return view


def read_fetch(frame: bytes) -> FetchRequest:
    """A Fetch request's partitions."""
    view = read_request([frame])
    return read_fetch_request(frame, after_bounds(view), view.api_version)


def request_view(api: Api, version: int, fetch_rewrite: FetchRewrite | None = None) -> RequestView:
    """A request's view with the fields that reading its response needs."""
    view = RequestView(api.key, version, 1, "client", 100, flexible=version >= api.flexible_from)
    view.fetch_rewrite = fetch_rewrite
    return view


def start_response(
    api: Api, version: int, pieces: list[bytes], want_items: bool
) -> tuple[Reader, ResponseView]:
    """A reader at the end of the response header, and an empty view."""
    reader = Reader(pieces, LENGTH_SIZE)
    reader.i32()
    if api.flexible_response_header(version):
        reader.skip_tags()
    body_size = sum(map(len, pieces)) - reader.offset
    return reader, ResponseView(version, version >= api.flexible_from, body_size, want_items)


def read_response(
    api_key: int,
    version: int,
    pieces: list[bytes],
    want_items: bool = True,
    length_sent: bool = False,
    fetch_rewrite: FetchRewrite | None = None,
) -> ResponseView:
    """The view of a whole response; `length_sent`: as if its length had been forwarded already."""
    api = api_of(api_key)
    reader, view = start_response(api, version, pieces, want_items)
    view.cursor.length_sent = length_sent
    api.read_response(reader, request_view(api, version, fetch_rewrite), view, PORTS)
    assert view.cursor.done
    return view


def edited(pieces: list[bytes], view: View) -> bytes:
    """Return the frame with the view's edits applied."""
    size = sum(map(len, pieces))
    return b"".join(apply(pieces, with_length(view.edits, size - LENGTH_SIZE)))


def announce(view: ResponseView, throttle_time_ms: int) -> None:
    """Add the edit that sets throttle_time_ms."""
    insert(view.edits, Edit(view.throttle_at, view.throttle_at + 4, i32(throttle_time_ms)))


def items_of(view: View) -> list[tuple[str, bytes, int, int]]:
    return [_fields(item) for item in view.items]


def _fields(item: Item) -> tuple[str, bytes, int, int]:
    return (item.topic, item.topic_id, item.partition, item.size)


def ends_short(api: Api, reader: Reader, request: RequestView, view: ResponseView) -> bool:
    """Read on; return whether the bytes ended before the message."""
    try:
        api.read_response(reader, request, view, PORTS)
    except Short:
        return True
    return False


def pass_response(
    api_key: int, version: int, parts: list[bytes], throttle_time_ms: int = 0, want_items: bool = False
) -> tuple[list[bytes], ResponseView]:
    """Return what is forwarded of a response after each of its parts, as for one that is cut through."""
    api = api_of(api_key)
    request = request_view(api, version)
    frame = Frame([parts[0]], sum(map(len, parts)), len(parts) == 1)
    client = Client("ANONYMOUS", "client", "127.0.0.1", Bytes(), b"client")
    reader, view = start_response(api, version, [parts[0]], want_items)
    view.partial = True
    passing = CutThrough(frame, Exchange(1, client, api=api, request=request), reader, view)
    passed = []
    for at, part in enumerate(parts):
        frame.complete = at == len(parts) - 1
        if at > 0:
            passing.feed([part])
        if not view.cursor.done and ends_short(api, reader, request, view):
            assert not frame.complete, "the message is longer than its frame"
        if not passing.settled and passing.has_read(view.throttle_at):
            passing.settled = True
            if view.throttle_at >= 0 and throttle_time_ms > view.throttle_time_ms:
                announce(view, throttle_time_ms)
                view.cursor.marked_edits += 1
        passed.append(b"".join(passing.take()))
    assert passing.waiting == 0
    return passed, view
