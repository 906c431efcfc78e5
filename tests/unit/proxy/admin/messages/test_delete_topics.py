from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.messages.delete_topics import DELETE_TOPICS
from proxy.admin.messages.topics import (
    TopicsRequest,
    TopicsResponse,
    read_topics_request,
    write_topics_response,
)
from proxy.admin.yielder import Yielder
from tests.support.messages.kio_messages import read_frame, request_frame, response_type
from tests.support.messages.mutations import DELETE, delete_topics, intercepted, to_end, topic_id


def read(frame: bytes) -> TopicsRequest:
    given = intercepted(frame)
    return to_end(read_topics_request(DELETE_TOPICS, given.header, given.frame, Yielder()))


def rejected(request: TopicsRequest) -> Any:
    topics = [
        request.reject(topic, ErrorCode.throttling_quota_exceeded, "because") for topic in request.topics
    ]
    frame = write_topics_response(request, TopicsResponse(topics, 250))
    response = read_frame(response_type(DELETE, request.version), frame)
    assert response.throttle_time.total_seconds() == 0.25
    return response.responses


@pytest.mark.parametrize("version", [5, 6])
def test_topics_by_name(version: int) -> None:
    request = read(request_frame(delete_topics(["a", "b"], version)))
    assert [topic.key for topic in request.topics] == ["a", "b"]
    assert [(r.name, r.error_code, r.error_message) for r in rejected(request)] == [
        ("a", ErrorCode.throttling_quota_exceeded, "because"),
        ("b", ErrorCode.throttling_quota_exceeded, "because"),
    ]


def test_topic_requested_by_id_is_rejected_without_a_name() -> None:
    request = read(request_frame(delete_topics(ids=[topic_id("a")])))
    assert [topic.key for topic in request.topics] == [topic_id("a").bytes]
    assert [(result.name, result.topic_id) for result in rejected(request)] == [(None, topic_id("a"))]
