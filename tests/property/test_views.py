"""Views and edits agree with kio, for every version that it has of every API that the proxy reads."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from proxy.admin.dispatch import APIS
from proxy.wire.api_keys import API_VERSIONS, FETCH, METADATA, PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import Edit, i32
from proxy.wire.views import ResponseView
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    has_address,
    is_without_endpoints,
    parts_of,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.random_messages import messages
from tests.support.messages.reading import (
    announce,
    edited,
    items_of,
    pass_response,
    read_request,
    read_response,
)

ENDPOINTS_TAG = {PRODUCE: 10, FETCH: 16}
"""The APIs whose NodeEndpoints stand in a tag, from this version on."""
HIDDEN = BROKER_HOST.encode()

READ = [api.key for api in APIS.read if api is not None]
FEW = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])


def each_version(*api_keys: int) -> pytest.MarkDecorator:
    pairs = [(key, version) for key in api_keys for version in versions(key)]
    return pytest.mark.parametrize(("api_key", "version"), pairs, ids=[f"{key}v{v}" for key, v in pairs])


def split(data: st.DataObject, frame: bytes, first: int = 0) -> list[bytes]:
    cuts = data.draw(st.lists(st.integers(first, len(frame)), max_size=8), label="cuts")
    return parts_of(frame, cuts)


def sizes(
    topics: Iterable[Any],
    partitions: str,
    number: str,
    *,
    errors_only: bool = False,
    records_only: bool = False,
) -> list[tuple[str, bytes, int, int]]:
    """The items that a view has to show."""
    return [
        (
            getattr(topic, "name", "") or getattr(topic, "topic", ""),
            topic.topic_id.bytes if getattr(topic, "topic_id", None) else NO_ID,
            getattr(partition, number),
            len(getattr(partition, "records", b"") or b""),
        )
        for topic in topics
        for partition in getattr(topic, partitions)
        if (not errors_only or partition.error_code is not ErrorCode.none)
        and (not records_only or getattr(partition, "records", None))
    ]


def some_request(data: st.DataObject, api_key: int, version: int) -> tuple[Any, str | None, bytes]:
    request = data.draw(messages(request_type(api_key, version)), label="request")
    client_id = data.draw(st.none() | st.text(alphabet="cß", max_size=5), label="client_id")
    return request, client_id, request_frame(request, 7, client_id)


@each_version(PRODUCE, FETCH)
@FEW
@given(data=st.data())
def test_requests(api_key: int, version: int, data: st.DataObject) -> None:
    request, client_id, frame = some_request(data, api_key, version)
    pieces = split(data, frame)
    view = read_request(pieces)
    assert (view.api_key, view.api_version, view.correlation_id) == (api_key, version, 7)
    assert (view.client_id, view.size) == (client_id or "", len(frame) - 4)
    assert edited(pieces, view) == frame
    if api_key == PRODUCE:
        assert view.acks == request.acks
        assert items_of(view) == sizes(request.topic_data, "partition_data", "index")
    else:
        assert (view.min_bytes, view.max_bytes) == (request.min_bytes, request.max_bytes)
        view.edits[:] = [
            Edit(view.min_bytes_at, view.min_bytes_at + 4, i32(5)),
            Edit(view.max_bytes_at, view.max_bytes_at + 4, i32(6)),
        ]
        assert edited(pieces, view) == request_frame(replace(request, min_bytes=5, max_bytes=6), 7, client_id)


@pytest.mark.parametrize("api_key", [key for key in READ if key not in (PRODUCE, FETCH)])
@FEW
@given(data=st.data())
def test_requests_of_which_only_the_header_is_read(api_key: int, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions(api_key)), label="version")
    _, client_id, frame = some_request(data, api_key, version)
    view = read_request(split(data, frame))
    assert (view.api_version, view.client_id, view.size) == (version, client_id or "", len(frame) - 4)
    assert view.edits == []


def through(response: Any) -> Any:
    """What the client has to read."""
    if response.__api_key__ != API_VERSIONS:
        return through_proxy(response)
    kept = []
    for key in response.api_keys:
        api = APIS.known[key.api_key] if 0 <= key.api_key < len(APIS.known) else None
        if api is None or (key.max_version <= api.newest and key.min_version >= api.oldest):
            kept.append(key)
        elif key.min_version <= api.newest and key.max_version >= api.oldest:
            low, high = max(key.min_version, api.oldest), min(key.max_version, api.newest)
            kept.append(replace(key, min_version=low, max_version=high))
    return replace(response, api_keys=tuple(kept))


def some_response(data: st.DataObject, api_key: int, version: int) -> Any:
    response = data.draw(messages(response_type(api_key, version)), label="response")
    if api_key == API_VERSIONS and version >= 3 and response.error_code is ErrorCode.unsupported_version:
        # A broker says so in v0's form, which is another message.
        return replace(response, error_code=ErrorCode.none)
    return response


def waits(response: Any) -> bool:
    return hasattr(response, "throttle_time")


def header_size(response: Any) -> int:
    return 9 if response.__header_schema__.__flexible__ else 8


def endpoints_in_a_tag(response: Any) -> bool:
    first = ENDPOINTS_TAG.get(response.__api_key__)
    return first is not None and response.__version__ >= first and bool(response.node_endpoints)


@each_version(*READ)
@FEW
@given(data=st.data())
def test_responses(api_key: int, version: int, data: st.DataObject) -> None:
    response = some_response(data, api_key, version)
    check_view(response, split(data, response_frame(response)))
    throttle_ms = data.draw(st.sampled_from([0, 2**31 - 1]), label="throttle_ms")
    parts = split(data, response_frame(response), header_size(response))
    check_parts(response, [part for part in parts if part], throttle_ms)
    if endpoints_in_a_tag(response) or has_address(response):
        view = read_response(api_key, version, parts, length_sent=True)
        assert is_without_endpoints(edited(parts, view), response)


def errors_of(response: Any) -> list[int]:
    """The error codes that a view has to show."""
    read = [response] if response.__api_key__ != METADATA else []
    read += getattr(response, "coordinators", ())
    for topic in getattr(response, "responses", ()):
        read += getattr(topic, "partition_responses", ()) or getattr(topic, "partitions", ())
    return sorted(int(each.error_code) for each in read if getattr(each, "error_code", None))


def error_codes(view: ResponseView) -> list[int]:
    """The error codes that a view shows."""
    return sorted(error.error_code for error in view.errors or [] for _ in range(error.times))


def check_view(response: Any, pieces: list[bytes]) -> None:
    """The view's fields are the message's, and the frame that goes on is the message but for the edits."""
    view = read_response(response.__api_key__, response.__version__, pieces)
    assert view.body_size == sum(map(len, pieces)) - header_size(response)
    assert (view.throttle_at >= 0) is waits(response)
    assert error_codes(view) == errors_of(response)
    if waits(response):
        assert milliseconds(view.throttle_time_ms) == response.throttle_time
    if hasattr(response, "responses"):
        names = type(response).__annotations__["responses"].__args__[0].__annotations__
        partitions = "partition_responses" if "partition_responses" in names else "partitions"
        number = "index" if response.__api_key__ == PRODUCE else "partition_index"
        errors_only = response.__api_key__ == PRODUCE
        assert items_of(view) == sizes(
            response.responses, partitions, number, errors_only=errors_only, records_only=not errors_only
        )
    wanted = through(response)
    assert read_frame(type(response), edited(pieces, view)) == wanted
    if waits(response):
        announce(view, 123_456)
        wanted = replace(wanted, throttle_time=milliseconds(123_456))
        assert read_frame(type(response), edited(pieces, view)) == wanted


def check_parts(response: Any, parts: list[bytes], throttle_ms: int) -> None:
    """Cut through in these parts, it is the same message but for its edits, and holds no broker's address."""
    want_items = len(parts) % 2 == 0
    passed, view = pass_response(response.__api_key__, response.__version__, parts, throttle_ms, want_items)
    if want_items or response.__api_key__ != FETCH:
        assert error_codes(view) == errors_of(response)
    told = response
    if waits(response) and milliseconds(throttle_ms) > response.throttle_time:
        told = replace(response, throttle_time=milliseconds(throttle_ms))
    got = b"".join(passed)
    if HIDDEN not in response_frame(through(response)):
        assert HIDDEN not in got
    has_endpoints = endpoints_in_a_tag(response) or has_address(response)
    if has_endpoints and len(got) == sum(map(len, parts)) and is_without_endpoints(got, told):
        return  # the length had to go before the endpoints were there
    assert read_frame(type(response), got) == through(told)
