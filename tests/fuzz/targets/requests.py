"""Request views: whole or in pieces they are the same, and kio reads the same.

Input: how the frame is cut (16 bits), and the frame without its length.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from kio.serial.errors import SerialError

from proxy.admin.dispatch import APIS
from proxy.upstream.responses import checked
from proxy.wire.api_keys import FETCH, PRODUCE
from proxy.wire.apis.api import read_request_header
from proxy.wire.apis.api_01_fetch import after_bounds
from proxy.wire.apis.rejected_partitions import cut as cut_partitions
from proxy.wire.cursor import NO_ID
from proxy.wire.errors import ProtocolError
from proxy.wire.fetch.request import read_fetch_request
from proxy.wire.reader import Reader, text
from proxy.wire.views import RequestView
from tests.fuzz.harness import Data, Target, cut
from tests.support.messages.kio_messages import decode, framed, request_frame, request_type, versions
from tests.support.messages.random_messages import sample
from tests.support.messages.reading import edited, items_of, read_request

LENGTH: Final = 4


def run(data: bytes) -> None:
    given = Data(data)
    seed, payload = given.number(), given.rest()
    if not _is_known(payload):
        return
    frame = framed(payload)
    view = _read([frame])
    _same(view, _read(cut(frame, seed)))
    if isinstance(view, RequestView):
        assert edited([frame], view) == frame
        _read_again(frame, view)
    message = _read_by_kio(payload)
    if message is not None:
        assert isinstance(view, RequestView), f"kio reads {message}, but: {view!r}"
        _compare(view, message)


def _is_known(payload: bytes) -> bool:
    try:
        header = read_request_header(Reader([payload]))
    except ProtocolError:
        return False
    api = APIS.read[header.api_key] if header.api_key < len(APIS.read) else None
    return api is not None and api.oldest <= header.api_version <= api.newest


def _read(pieces: list[bytes]) -> RequestView | ProtocolError:
    try:
        return read_request(pieces)
    except ProtocolError as error:
        return error


def _same(one: RequestView | ProtocolError, other: RequestView | ProtocolError) -> None:
    assert type(one) is type(other), f"{one!r} whole, {other!r} in pieces"
    if isinstance(one, RequestView) and isinstance(other, RequestView):
        assert _shown(one) == _shown(other)


def _shown(view: RequestView) -> object:
    edits = [(edit.start, edit.end, edit.new) for edit in view.edits]
    numbers = (
        view.acks,
        view.max_wait_ms,
        view.max_bytes,
        view.max_bytes_at,
        view.min_bytes,
        view.min_bytes_at,
    )
    return view.client_id, view.client_software, view.size, numbers, items_of(view), edits


def _read_again(frame: bytes, view: RequestView) -> None:
    """What reads the message a second time, where quotas omit or reject partitions."""
    if view.api_key == FETCH and view.api_version >= 4:
        with suppress(ProtocolError):
            read_fetch_request(frame, after_bounds(view), view.api_version)
    if view.api_key == PRODUCE and view.items:
        reader = Reader([frame], LENGTH)
        read_request_header(reader)
        if view.flexible:
            reader.skip_tags()
        body_at = reader.offset
        for rejected in ([0], list(range(len(view.items)))):
            edits = cut_partitions([frame], body_at, view.api_version, view.flexible, rejected)
            assert edits


def _read_by_kio(payload: bytes) -> Any:
    """The message, if kio reads it to the end."""
    header = read_request_header(Reader([payload]))
    if header.api_version not in versions(header.api_key):
        return None
    schema = request_type(header.api_key, header.api_version)
    reader = Reader([payload])
    read_request_header(reader)
    try:
        text(header.raw_client_id)
        if schema.__flexible__:
            reader.skip_tags()
        at = reader.offset
        payload = checked(payload, schema, at=at)
        message, size = decode(schema, payload[at:])
    except (ProtocolError, SerialError, ValueError):
        return None
    return message if at + size == len(payload) else None


def _compare(view: RequestView, message: Any) -> None:
    if view.api_key == PRODUCE:
        assert view.acks == message.acks
        assert items_of(view) == _items(message)
    elif view.api_key == FETCH:
        assert (view.min_bytes, view.max_bytes) == (message.min_bytes, message.max_bytes)


def _items(message: Any) -> list[tuple[str, bytes, int, int]]:
    return [
        (getattr(topic, "name", ""), _id(topic), partition.index, len(partition.records or b""))
        for topic in message.topic_data or ()
        for partition in topic.partition_data or ()
    ]


def _id(topic: Any) -> bytes:
    topic_id = getattr(topic, "topic_id", None)
    return NO_ID if topic_id is None else bytes(topic_id.bytes)


def seeds() -> Iterator[bytes]:
    for api in APIS.read:
        if api is None:
            continue
        for version in versions(api.key):
            yield b"\0\1" + request_frame(sample(request_type(api.key, version)))[LENGTH:]


TARGET: Final = Target(run, seeds)
