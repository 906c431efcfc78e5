"""Whatever bytes come: wire raises nothing but ProtocolError, the relay nothing but RelayError."""

from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.wire.apis.registry import WITHOUT_INTERCEPTED
from proxy.wire.errors import ProtocolError
from proxy.wire.frames import FrameSplitter
from tests.support.messages.exchanges import opaque
from tests.support.messages.kio_messages import (
    framed,
    parts_of,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.random_messages import sample
from tests.support.messages.reading import edited, pass_response, read_request, read_response
from tests.support.stories.playbook import EVERYONE, START, RelayDriver, new_relay

PAIRS = [
    (api.key, version) for api in WITHOUT_INTERCEPTED.read if api is not None for version in versions(api.key)
]
REQUESTS = [request_frame(sample(request_type(key, version))) for key, version in PAIRS]
RESPONSES = [response_frame(sample(response_type(key, version))) for key, version in PAIRS]
IDS = [f"{key}v{version}" for key, version in PAIRS]
BYTES = (0x00, 0x7F, 0xFF)
SLOW = {EVERYONE: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0}}
SOME = settings(max_examples=100)

Args = ParamSpec("Args")
Value = TypeVar("Value")


def damaged(frame: bytes, first: int = 4) -> Iterator[bytes]:
    """The frame with one byte changed, cut short, or with a byte more, at every place from `first` on."""
    for at in range(first, len(frame)):
        for byte in BYTES:
            yield frame[:at] + bytes([byte]) + frame[at + 1 :]
        yield frame[:at]
        yield frame[:at] + b"\xff" + frame[at:]


def only_protocol_errors(
    call: Callable[Args, Value], *args: Args.args, **kwargs: Args.kwargs
) -> Value | None:
    try:
        return call(*args, **kwargs)
    except ProtocolError:
        return None


@pytest.mark.parametrize("frame", REQUESTS, ids=IDS)
def test_a_damaged_request(frame: bytes) -> None:
    for bad in damaged(frame, 12):
        only_protocol_errors(read_request, [bad])


@pytest.mark.parametrize("frame", [REQUESTS[0], REQUESTS[-1]], ids=[IDS[0], IDS[-1]])
def test_a_damaged_request_in_a_relay(frame: bytes) -> None:
    for bad in damaged(frame):
        try:
            new_relay().receive_from_client(framed(bad[4:]), START)
        except RelayError as error:
            reasons = {error.reason}
        else:
            reasons = set()
        assert reasons <= {CLIENT_PROTOCOL_ERROR}


@pytest.mark.parametrize(("pair", "frame"), list(zip(PAIRS, RESPONSES, strict=True)), ids=IDS)
def test_a_damaged_response(pair: tuple[int, int], frame: bytes) -> None:
    for number, bad in enumerate(damaged(frame)):
        view = only_protocol_errors(read_response, *pair, [bad], True, number % 2 == 0)
        if view is not None:
            edited([bad], view)


def spread(frame: bytes, at: int) -> list[bytes]:
    """The frame in three parts, cut around a place; the first has the header."""
    return [part for part in parts_of(frame, [max(at, 10), max(at, 10) + 5]) if part]


@pytest.mark.parametrize(("pair", "frame"), list(zip(PAIRS, RESPONSES, strict=True)), ids=IDS)
def test_a_damaged_response_that_is_cut_through(pair: tuple[int, int], frame: bytes) -> None:
    for at in range(9, len(frame)):
        for byte in (0x00, 0xFF):
            bad = frame[:at] + bytes([byte]) + frame[at + 1 :]
            try:
                passed, _ = pass_response(pair[0], pair[1], spread(bad, at), 2000)
            except (ProtocolError, AssertionError):
                # The message is longer than its frame, which the relay finds at the frame's end.
                continue
            assert passed


@SOME
@given(st.sampled_from(PAIRS), st.binary(max_size=100))
def test_any_bytes_as_a_response(pair: tuple[int, int], body: bytes) -> None:
    only_protocol_errors(read_response, *pair, [framed(b"\0\0\0\1" + body)])


@SOME
@given(st.sampled_from(PAIRS), st.binary(max_size=100))
def test_any_bytes_as_a_request(pair: tuple[int, int], body: bytes) -> None:
    only_protocol_errors(read_request, [opaque(1, pair[0], pair[1], body)])


@SOME
@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_bytes_as_frames(chunks: list[bytes]) -> None:
    splitter = FrameSplitter(1000)
    try:
        for chunk in chunks:
            splitter.feed(chunk)
            while splitter.next() is not None:
                pass
    except ProtocolError:
        pass


SENT = st.one_of(
    st.sampled_from(REQUESTS),
    st.builds(opaque, st.integers(0, 5), st.integers(0, 200), st.integers(0, 20), st.binary(max_size=60)),
    st.binary(max_size=30),
    st.binary(max_size=30).map(framed),
)
BROKER_BYTES = st.one_of(
    st.sampled_from(RESPONSES),
    st.binary(max_size=60).map(lambda body: framed(b"\0\0\0\1" + body)),
    st.binary(max_size=30),
)
EVENTS = st.lists(
    st.tuples(st.just("client"), SENT)
    | st.tuples(st.just("broker"), BROKER_BYTES)
    | st.tuples(st.sampled_from(["timer", "drain"]), st.just(b"")),
    max_size=12,
)


@settings(max_examples=300)
@given(EVENTS, st.booleans())
def test_a_relay_blames_one_side_for_whatever_comes(
    events: list[tuple[str, bytes]], topic_partitions: bool
) -> None:
    relay = new_relay(SLOW, Traffic(topic_partitions))
    now = START
    for kind, data in events:
        now += 0.5
        reason = happen(relay, kind, data, now)
        if reason:
            # A broker's bytes may let more of the client's be read.
            sides = [BROKER_PROTOCOL_ERROR] if kind == "broker" else []
            assert reason in [CLIENT_PROTOCOL_ERROR, *sides]
            return
        relay.take_to_client()
        relay.take_to_broker()


def happen(relay: RelayDriver, kind: str, data: bytes, now: float) -> str:
    """Why the connection has to end after this; empty where it has not."""
    try:
        if kind == "client":
            relay.receive_from_client(data, now)
        elif kind == "broker":
            relay.receive_from_broker(data, now)
        elif kind == "drain":
            relay.drain(now)
        else:
            relay.handle_timer(max(now, relay.next_timer))
    except RelayError as error:
        return error.reason if str(error) else "no text"
    return ""
