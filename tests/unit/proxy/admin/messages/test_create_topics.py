import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.messages.create_topics import CREATE_TOPICS, add_configs, split_configs
from proxy.admin.messages.topics import (
    TopicsRequest,
    TopicsResponse,
    read_topics_request,
    read_topics_response,
    write_topics_response,
)
from proxy.admin.yielder import Yielder
from tests.support.messages.kio_messages import read_frame, request_frame, response_type, versions
from tests.support.messages.mutations import (
    CREATE,
    create_topics,
    created,
    intercepted,
    old_create_topics,
    old_response,
    payload_of,
    to_end,
)


def read(frame: bytes) -> TopicsRequest:
    given = intercepted(frame)
    return to_end(read_topics_request(CREATE_TOPICS, given.header, given.frame, Yielder()))


@pytest.mark.parametrize("version", versions(CREATE))
@pytest.mark.parametrize("message", [None, "because"])
def test_rejection_at_every_version_of_kio(version: int, message: str | None) -> None:
    request = read(request_frame(create_topics({"a": 1}, version)))
    [topic] = request.topics
    rejected = request.reject(topic, ErrorCode.invalid_config, message)
    response = read_frame(
        response_type(CREATE, version), write_topics_response(request, TopicsResponse([rejected]))
    )
    [result] = response.topics
    assert (result.name, result.error_code, result.error_message) == ("a", ErrorCode.invalid_config, message)
    assert getattr(result, "num_partitions", -1) == -1
    assert getattr(result, "topic_id", None) is None


def test_rejection_before_error_messages() -> None:
    request = read(old_create_topics({"a": 1}, 0, 5))
    rejected = request.reject(request.topics[0], 40, "because")
    frame = write_topics_response(request, TopicsResponse([rejected]))
    assert frame == old_response({"a": 40}, correlation_id=5)


def test_wanted_configs_are_taken_out() -> None:
    request = read(request_frame(create_topics({"a": 1})))
    [topic] = request.topics
    [config], rest = to_end(split_configs(request, topic, {"retention.ms"}.__contains__, Yielder()))
    assert (config.name, config.value) == ("retention.ms", "60000")
    again = read(request.frame([topic])).with_topics([rest])
    assert to_end(split_configs(again, again.topics[0], lambda name: True, Yielder()))[0] == []


def test_forwarded_configs_stay_in_the_request() -> None:
    request = read(request_frame(create_topics({"a": 1})))
    [topic] = request.topics
    configs, rest = to_end(split_configs(request, topic, lambda name: True, Yielder(), {"retention.ms"}))
    assert [config.name for config in configs] == ["retention.ms"]
    assert rest is topic


def test_response_without_configs_gets_none() -> None:
    """A broker sends null to a client that may not describe the topic's configs."""
    request = read(request_frame(create_topics({"a": 1})))
    whole = payload_of(created({"a": 0}))
    # The last bytes are an empty array of configs, and the tags of topic and response.
    hidden = whole[:-3] + b"\0" + whole[-2:]
    [topic] = to_end(read_topics_response(request, hidden, Yielder())).topics
    assert to_end(add_configs(request, topic, [], Yielder())) is topic
