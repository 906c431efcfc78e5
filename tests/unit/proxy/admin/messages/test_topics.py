"""Topic messages, read and written again; compared with kio in the versions that it has."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from kio.schema.errors import ErrorCode

from proxy.admin.messages.topics import (
    NO_COUNT,
    TopicsApi,
    TopicsRequest,
    TopicsResponse,
    read_topics_request,
    read_topics_response,
    write_topics_response,
)
from proxy.admin.mutations.mutations import TOPIC_APIS
from proxy.admin.yielder import STEPS, Yielder
from proxy.wire.cursor import NO_ID
from proxy.wire.errors import Malformed
from tests.support.loop_turns import counted_turns
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    LENGTH,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.mutations import (
    CREATE,
    DELETE,
    GROW,
    create_topics,
    created,
    frame_of,
    intercepted,
    old_create_topics,
    old_delete_topics,
    old_response,
    payload_of,
    to_end,
)
from tests.support.messages.random_messages import messages

EACH = [(key, version) for key in TOPIC_APIS for version in versions(key)]
each_version = pytest.mark.parametrize(("api_key", "version"), EACH, ids=[f"{key}v{v}" for key, v in EACH])
FEW = settings(max_examples=15)
TOPICS = {CREATE: "topics", DELETE: "responses", GROW: "results"}


def taken(frame: bytes) -> TopicsRequest:
    """A request in parts."""
    given_out = intercepted(frame)
    api = TOPIC_APIS[given_out.header.api_key]
    return to_end(read_topics_request(api, given_out.header, given_out.frame, Yielder()))


def read_response(request: TopicsRequest, frame: bytes) -> TopicsResponse:
    return to_end(read_topics_response(request, frame[LENGTH:], Yielder()))


def request_of(api_key: int, version: int) -> TopicsRequest:
    """Any request at this version; its topics do not matter."""
    empty = {"topics": ()} if hasattr(request_type(api_key, version), "topics") else {"topic_names": ()}
    more = {"validate_only": False} if hasattr(request_type(api_key, version), "validate_only") else {}
    schema = request_type(api_key, version)
    return taken(request_frame(schema(timeout=create_topics({}).timeout, **empty, **more)))


def asked_for(message: Any) -> list[tuple[str | None, bytes, int]]:
    """What the topics of a request say, by kio."""
    if hasattr(message, "topic_names"):
        return [(name, NO_ID, NO_COUNT) for name in message.topic_names]
    if message.__api_key__ == DELETE:
        return [(t.name, t.topic_id.bytes if t.topic_id else NO_ID, NO_COUNT) for t in message.topics]
    if message.__api_key__ == GROW:
        return [(topic.name, NO_ID, topic.count) for topic in message.topics]
    return [(t.name, NO_ID, len(t.assignments) or t.num_partitions) for t in message.topics]


def with_topics(message: Any, places: list[int]) -> Any:
    field = "topic_names" if hasattr(message, "topic_names") else "topics"
    topics = getattr(message, field)
    return replace(message, **{field: tuple(topics[place] for place in places)})


@each_version
@FEW
@given(data=st.data())
def test_request_round_trip(api_key: int, version: int, data: DataObject) -> None:
    message = data.draw(messages(request_type(api_key, version)))
    frame = request_frame(message, 7)
    request = taken(frame)
    said = [(t.fields.name, t.fields.topic_id, t.fields.partitions) for t in request.topics]
    assert said == asked_for(message)
    assert (request.correlation_id, request.version) == (7, version)
    assert request.validate_only == getattr(message, "validate_only", False)
    assert request.frame(request.topics) == frame
    places = data.draw(st.sets(st.integers(0, max(len(said) - 1, 0)))) if said else set()
    some = request.frame([request.topics[place] for place in sorted(places)])
    assert some == request_frame(with_topics(message, sorted(places)), 7)


@each_version
@FEW
@given(data=st.data())
def test_response_round_trip(api_key: int, version: int, data: DataObject) -> None:
    message = data.draw(messages(response_type(api_key, version)))
    request = request_of(api_key, version)
    read = read_response(request, response_frame(message, 1))
    native = getattr(message, TOPICS[api_key])
    assert [(t.fields.name, t.fields.error_code) for t in read.topics] == [
        (topic.name, topic.error_code.value) for topic in native
    ]
    for topic, same in zip(read.topics, native, strict=True):
        own_id = getattr(same, "topic_id", None)
        assert topic.fields.topic_id == (own_id.bytes if own_id else NO_ID)
        assert topic.fields.partitions == getattr(same, "num_partitions", NO_COUNT)
    throttle_time = getattr(message, "throttle_time", None)
    assert read.throttle_time_ms == (throttle_time // milliseconds(1) if throttle_time is not None else 0)
    again = write_topics_response(request, TopicsResponse(read.topics[::-1], 1234))
    changed = {TOPICS[api_key]: native[::-1]}
    if throttle_time is not None:
        changed["throttle_time"] = milliseconds(1234)
    assert again == response_frame(replace(message, **changed), 1)


@pytest.mark.parametrize(
    ("api_key", "version"), [(key, v) for key, v in EACH if v >= TOPIC_APIS[key].strict_from], ids=str
)
def test_rejection_is_kafkas(api_key: int, version: int) -> None:
    request = request_of(api_key, version)
    [topic] = read_response(request, response_frame(some_response(api_key, version))).topics
    frame = write_topics_response(request, TopicsResponse([request.reject(topic, 89)], 1500))
    message = read_frame(response_type(api_key, version), frame)
    [rejected] = getattr(message, TOPICS[api_key])
    assert (rejected.name, rejected.error_code) == ("a", ErrorCode.throttling_quota_exceeded)
    assert rejected.error_message is None
    assert message.throttle_time.total_seconds() == 1.5
    if api_key == CREATE:
        assert (rejected.num_partitions, rejected.replication_factor, rejected.configs) == (-1, -1, ())
        assert getattr(rejected, "topic_id", None) is None


def some_response(api_key: int, version: int) -> Any:
    schema = response_type(api_key, version)
    kind = schema.__annotations__[TOPICS[api_key]].__args__[0]
    fields: dict[str, Any] = {"topic_id": None} if hasattr(kind, "topic_id") else {}
    if api_key == CREATE:
        fields |= {"configs": (), "error_message": None}
    topic = kind(name="a", error_code=ErrorCode.none, **fields)
    return schema(throttle_time=created({}).throttle_time, **{TOPICS[api_key]: (topic,)})


@pytest.mark.parametrize("version", [0, 1])
def test_create_topics_versions_that_kio_lacks(version: int) -> None:
    frame = old_create_topics({"a": 3, "b": -1}, version, 5)
    request = taken(frame)
    assert [(t.key, t.fields.partitions) for t in request.topics] == [("a", 3), ("b", -1)]
    assert (request.strict, request.has_throttle_time, request.validate_only) == (False, False, False)
    assert request.frame(request.topics) == frame
    assert request.frame(request.topics[1:]) == old_create_topics({"b": -1}, version, 5)
    read = read_response(request, old_response({"a": 0, "b": 36}, messages=version == 1))
    assert [(t.key, t.fields.error_code) for t in read.topics] == [("a", 0), ("b", 36)]
    again = write_topics_response(request, TopicsResponse(read.topics, 1234))
    assert again == old_response({"a": 0, "b": 36}, messages=version == 1, correlation_id=5)


def test_delete_topics_version_that_kio_lacks() -> None:
    frame = old_delete_topics(["a", "b"])
    request = taken(frame)
    assert [topic.key for topic in request.topics] == ["a", "b"]
    assert request.frame(request.topics[:1]) == old_delete_topics(["a"])
    read = read_response(request, old_response({"a": 0, "b": 3}))
    assert write_topics_response(request, TopicsResponse(read.topics, 1234)) == old_response({"a": 0, "b": 3})


@pytest.mark.parametrize("api", TOPIC_APIS.values(), ids=lambda api: api.versions.name)
def test_versions_are_kafkas(api: TopicsApi) -> None:
    for version in versions(api.versions.key):
        request, response = (schema(api.versions.key, version) for schema in (request_type, response_type))
        assert request.__name__ == f"{api.versions.name}Request"
        assert api.flexible(version) is request.__flexible__ is response.__flexible__
        assert api.flexible(version) is response.__header_schema__.__flexible__
        assert (version >= api.throttle_from) is hasattr(response, "throttle_time")
        assert (version >= api.validate_only_from) is hasattr(request, "validate_only")


def test_unknown_tagged_fields_are_kept() -> None:
    """Unknown tagged fields, of a topic and of the request, go with them."""
    frame = frame_of(create_topics({"a": 1, "b": 2}))
    # The last bytes: topic b's tags, timeout, validate_only, the request's tags.
    tags = b"\x01\x63\x02hi"
    body = frame[LENGTH:-7] + tags + frame[-6:-1] + tags
    request = taken(len(body).to_bytes(LENGTH, "big") + body)
    assert [topic.key for topic in request.topics] == ["a", "b"]
    kept = request.frame(request.topics[1:])
    assert kept.count(tags) == 2
    assert kept.endswith(frame[-6:-1] + tags)


@pytest.mark.parametrize("size", [*range(10, 56, 5)])
def test_truncated_request_is_malformed(size: int) -> None:
    whole = frame_of(create_topics({"a": 1, "b": [[1], [1, 2]]}))
    given_out = intercepted(whole)
    with pytest.raises(Malformed):
        to_end(read_topics_request(TOPIC_APIS[CREATE], given_out.header, given_out.frame[:size], Yielder()))


def test_truncated_response_is_malformed() -> None:
    request = taken(frame_of(create_topics({"a": 1})))
    whole = payload_of(created({"a": 0}))
    with pytest.raises(Malformed):
        to_end(read_topics_response(request, whole[:-4], Yielder()))


async def test_reading_a_long_request_gives_the_event_loop_turns() -> None:
    given_out = intercepted(frame_of(create_topics({f"topic-{n}": 1 for n in range(STEPS)})))
    async with counted_turns() as turns:
        await read_topics_request(TOPIC_APIS[CREATE], given_out.header, given_out.frame, Yielder())
    assert turns.count >= 2
