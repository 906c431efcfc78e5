import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.messages.create_partitions import CREATE_PARTITIONS
from proxy.admin.messages.topics import TopicsResponse, read_topics_request, write_topics_response
from proxy.admin.yielder import Yielder
from tests.support.messages.kio_messages import read_frame, request_frame, response_type, versions
from tests.support.messages.mutations import GROW, create_partitions, intercepted, to_end


@pytest.mark.parametrize("version", versions(GROW))
def test_partitions_are_the_new_total(version: int) -> None:
    given = intercepted(request_frame(create_partitions({"a": 5, "b": 7}, version, validate_only=True)))
    request = to_end(read_topics_request(CREATE_PARTITIONS, given.header, given.frame, Yielder()))
    assert [(topic.key, topic.fields.partitions) for topic in request.topics] == [("a", 5), ("b", 7)]
    assert request.validate_only


def test_rejection() -> None:
    given = intercepted(request_frame(create_partitions({"a": 5})))
    request = to_end(read_topics_request(CREATE_PARTITIONS, given.header, given.frame, Yielder()))
    topic = request.reject(request.topics[0], ErrorCode.throttling_quota_exceeded)
    response = read_frame(response_type(GROW, 3), write_topics_response(request, TopicsResponse([topic])))
    assert [(result.name, result.error_code, result.error_message) for result in response.results] == [
        ("a", ErrorCode.throttling_quota_exceeded, None)
    ]
