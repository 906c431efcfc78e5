"""Response views: whole or in pieces they are the same, kio reads the same, and edits leave a valid message.

Input: the API's key and version, how the frame is cut (16 bits), and the frame without its length.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kio.serial.errors import SerialError

from proxy.admin.dispatch import APIS
from proxy.upstream.responses import checked
from proxy.wire.api_keys import API_VERSIONS
from proxy.wire.errors import ProtocolError, Short
from proxy.wire.views import ResponseView
from tests.fuzz.harness import Data, Target, cut
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    decode,
    framed,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.random_messages import sample
from tests.support.messages.reading import announce, edited, items_of, pass_response, read_response

LENGTH: Final = 4
MIN_HEADER: Final = 9
THROTTLE_MS: Final = 123_456


def run(data: bytes) -> None:
    given = Data(data)
    key, version, seed, payload = given.byte(), given.byte(), given.number(), given.rest()
    api = APIS.read[key] if key < len(APIS.read) else None
    if api is None or not api.oldest <= version <= api.newest:
        return
    frame = framed(payload)
    view = _read(key, version, [frame])
    _same(view, _read(key, version, cut(frame, seed)))
    if isinstance(view, ResponseView):
        _check_frame(edited([frame], view))
        _cut_through(key, version, frame, seed)
    message = _read_by_kio(key, version, payload)
    if message is not None:
        assert isinstance(view, ResponseView), f"kio reads {message}, but: {view!r}"
        _compare(view, frame, message)


def _read(key: int, version: int, pieces: list[bytes]) -> ResponseView | ProtocolError:
    try:
        return read_response(key, version, pieces)
    except ProtocolError as error:
        return error


def _same(one: ResponseView | ProtocolError, other: ResponseView | ProtocolError) -> None:
    assert type(one) is type(other), f"{one!r} whole, {other!r} in pieces"
    if isinstance(one, ResponseView) and isinstance(other, ResponseView):
        assert _shown(one) == _shown(other)


def _shown(view: ResponseView) -> object:
    edits = [(edit.start, edit.end, edit.new) for edit in view.edits]
    return view.throttle_at, view.throttle_time_ms, view.body_size, items_of(view), edits


def _check_frame(frame: bytes, size: int | None = None) -> None:
    assert int.from_bytes(frame[:LENGTH], "big") == len(frame) - LENGTH
    assert size is None or len(frame) == size, "the length has been sent"


def _cut_through(key: int, version: int, frame: bytes, seed: int) -> None:
    """As a large frame: what has been read whole is read in parts as well, but for NodeEndpoints, which keep
    the length.
    """
    if len(frame) <= MIN_HEADER:
        return
    parts = [frame[:MIN_HEADER], *cut(frame[MIN_HEADER:], seed)]
    try:
        passed, _ = pass_response(key, version, parts, THROTTLE_MS, seed % 2 == 0)
    except Short:
        return
    _check_frame(b"".join(passed))


def _read_by_kio(key: int, version: int, payload: bytes) -> Any:
    """The message, if kio reads it to the end."""
    if version not in versions(key):
        return None
    schema = response_type(key, version)
    try:
        payload = checked(payload, schema.__header_schema__, schema)
        _, at = decode(schema.__header_schema__, payload)
        message, size = decode(schema, payload[at:])
    except (ProtocolError, SerialError, ValueError):
        return None
    return message if at + size == len(payload) else None


def _compare(view: ResponseView, frame: bytes, message: Any) -> None:
    """What the client gets is the message, with the proxy's addresses and the proxy's throttle time."""
    if view.throttle_at >= 0:
        announce(view, THROTTLE_MS)
    got = _read_by_kio(message.__api_key__, message.__version__, edited([frame], view)[LENGTH:])
    if message.__api_key__ == API_VERSIONS:
        assert got.error_code == message.error_code
        return
    wanted = through_proxy(message)
    if hasattr(wanted, "throttle_time"):
        wanted = replace(wanted, throttle_time=milliseconds(THROTTLE_MS))
    assert got == wanted


def seeds() -> Iterator[bytes]:
    for api in APIS.read:
        if api is None:
            continue
        for version in versions(api.key):
            payload = response_frame(sample(response_type(api.key, version)))[LENGTH:]
            yield bytes([api.key, version, 0, 1]) + payload


TARGET: Final = Target(run, seeds)
