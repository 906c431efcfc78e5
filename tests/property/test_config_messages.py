"""Config requests and responses of any content and version are read and written again without a loss; damaged
ones raise ProtocolError.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.admin.messages.alter_configs import (
    AlteredResource,
    AlterRequest,
    AlterResponse,
    read_alter_request,
    read_alter_response,
    write_alter_response,
)
from proxy.admin.messages.create_topics import CREATE_TOPICS, add_configs, split_configs
from proxy.admin.messages.describe_configs import (
    DescribeRequest,
    DescribeResult,
    read_describe_request,
    read_describe_response,
    write_describe_response,
)
from proxy.admin.messages.topics import (
    TopicsRequest,
    TopicsResponse,
    read_topics_request,
    read_topics_response,
    write_topics_response,
)
from proxy.admin.yielder import Yielder
from proxy.wire.apis.api import RequestHeader, read_request_header
from proxy.wire.errors import ProtocolError
from proxy.wire.reader import Reader
from tests.support.messages.configs import ALTER, DESCRIBE, INCREMENTAL
from tests.support.messages.kio_messages import (
    LENGTH,
    framed,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.mutations import CREATE, to_end
from tests.support.messages.random_messages import messages

FEW = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
ALTERING = [(key, version) for key in (ALTER, INCREMENTAL) for version in versions(key)]
each_altering = pytest.mark.parametrize(("key", "version"), ALTERING)
each_describing = pytest.mark.parametrize("version", versions(DESCRIBE))
each_creating = pytest.mark.parametrize("version", versions(CREATE))


def header_of(frame: bytes) -> RequestHeader:
    return read_request_header(Reader([frame[LENGTH:]]))


def alter_request(frame: bytes) -> AlterRequest:
    return to_end(read_alter_request(header_of(frame), frame[LENGTH:], Yielder()))


def describe_request(frame: bytes) -> DescribeRequest:
    return to_end(read_describe_request(header_of(frame), frame[LENGTH:], Yielder()))


def create_request(frame: bytes) -> TopicsRequest:
    return to_end(read_topics_request(CREATE_TOPICS, header_of(frame), frame[LENGTH:], Yielder()))


@each_altering
@FEW
@given(st.data())
def test_alter_request_round_trip(key: int, version: int, data: st.DataObject) -> None:
    message = data.draw(messages(request_type(key, version)))
    frame = request_frame(message)
    request = alter_request(frame)
    assert request.frame([asked.part(asked.ops, request.flexible) for asked in request.resources]) == frame
    assert request.validate_only == message.validate_only
    for asked, resource in zip(request.resources, message.resources, strict=True):
        assert asked.key == (int(resource.resource_type) & 0xFF, resource.resource_name)
        assert [(op.name, op.value) for op in asked.ops] == [(c.name, c.value) for c in resource.configs]
    without = read_frame(
        request_type(key, version),
        request.frame([asked.part((), request.flexible) for asked in request.resources]),
    )
    assert [resource.configs for resource in without.resources] == [()] * len(message.resources)


@each_altering
@FEW
@given(st.data())
def test_alter_response_round_trip(key: int, version: int, data: st.DataObject) -> None:
    message = data.draw(messages(response_type(key, version)))
    frame = response_frame(message)
    request = alter_request(request_frame(data.draw(messages(request_type(key, version)))))
    reply = to_end(read_alter_response(request, frame[LENGTH:], Yielder()))
    assert [result.error_code for result in reply.results] == [
        int(response.error_code) for response in message.responses
    ]
    asked = replace(
        request, resources=[AlteredResource(result.key, (), b"", b"") for result in reply.results]
    )
    written = write_alter_response(asked, reply.results, reply.throttle_time_ms, Yielder())
    assert to_end(written) == frame


@each_describing
@FEW
@given(st.data())
def test_describe_round_trip(version: int, data: st.DataObject) -> None:
    message = data.draw(messages(request_type(DESCRIBE, version)))
    frame = request_frame(message)
    request = describe_request(frame)
    assert request.frame(request.resources) == frame
    some = read_frame(request_type(DESCRIBE, version), request.frame(request.resources[1:]))
    assert some.resources == message.resources[1:]
    reply = response_frame(data.draw(messages(response_type(DESCRIBE, version))))
    results, throttle_time_ms = to_end(read_describe_response(request, reply[LENGTH:], Yielder()))
    assert write_describe_response(request, results, throttle_time_ms) == reply


@each_creating
@FEW
@given(st.data())
def test_create_topics_round_trip(version: int, data: st.DataObject) -> None:
    message = data.draw(messages(request_type(CREATE, version)))
    frame = request_frame(message)
    request = create_request(frame)
    for topic in request.topics:
        assert to_end(split_configs(request, topic, lambda name: False, Yielder())) == ([], topic)
    halves = [to_end(split_configs(request, topic, lambda name: True, Yielder())) for topic in request.topics]
    without = read_frame(
        request_type(CREATE, version), framed(request.with_topics([rest for _, rest in halves]).payload)
    )
    assert [replace(topic, configs=()) for topic in message.topics] == list(without.topics)
    for (taken, _), topic in zip(halves, message.topics, strict=True):
        assert [(op.name, op.value) for op in taken] == [(c.name, c.value) for c in topic.configs]
    reply = response_frame(data.draw(messages(response_type(CREATE, version))))
    parts = to_end(read_topics_response(request, reply[LENGTH:], Yielder()))
    topics = [to_end(add_configs(request, topic, [], Yielder())) for topic in parts.topics]
    assert write_topics_response(request, TopicsResponse(topics, parts.throttle_time_ms)) == reply


def alter_response(request: bytes, response: bytes) -> AlterResponse:
    return to_end(read_alter_response(alter_request(request), response[LENGTH:], Yielder()))


def describe_response(request: bytes, response: bytes) -> tuple[list[DescribeResult], int]:
    return to_end(read_describe_response(describe_request(request), response[LENGTH:], Yielder()))


READERS: dict[int, tuple[Callable[[bytes], object], Callable[[bytes, bytes], object]]] = {
    ALTER: (alter_request, alter_response),
    INCREMENTAL: (alter_request, alter_response),
    DESCRIBE: (describe_request, describe_response),
}


@pytest.mark.parametrize("key", READERS)
@FEW
@given(st.data())
def test_damaged_message_raises_protocol_error(key: int, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions(key)))
    read, read_response = READERS[key]
    request = request_frame(data.draw(messages(request_type(key, version))))
    response = response_frame(data.draw(messages(response_type(key, version))))
    with suppress(ProtocolError):
        read(damaged(request, data, keep=LENGTH + 4))
    with suppress(ProtocolError):
        read_response(request, damaged(response, data, keep=LENGTH))


def damaged(frame: bytes, data: st.DataObject, keep: int) -> bytes:
    """The frame with some of its bytes changed and its end cut off, from `keep` on."""
    body = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(keep, len(body) - 1))] = data.draw(st.integers(0, 255))
    return bytes(body[: data.draw(st.integers(keep, len(body)))])
