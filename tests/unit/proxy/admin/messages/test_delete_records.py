"""DeleteRecords in parts; kio judges."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.messages.delete_records import DELETE_RECORDS
from proxy.admin.messages.topics import (
    TopicsResponse,
    read_topics_request,
    read_topics_response,
    write_topics_response,
)
from proxy.admin.yielder import Yielder
from tests.support.messages.kio_messages import (
    LENGTH,
    read_frame,
    request_frame,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.mutations import intercepted
from tests.support.messages.records import DELETE_RECORDS_KEY, delete_records, records_deleted

each_version = pytest.mark.parametrize("version", versions(DELETE_RECORDS_KEY))


async def read(request: Any) -> Any:
    given_out = intercepted(request_frame(request))
    return await read_topics_request(DELETE_RECORDS, given_out.header, given_out.frame, Yielder())


@each_version
async def test_a_request_in_parts_is_the_same_request(version: int) -> None:
    request = delete_records({"t": {0: 5, 3: 7}, "u": {}}, version)
    parts = await read(request)
    assert [topic.fields.name for topic in parts.topics] == ["t", "u"]
    assert parts.frame(parts.topics) == request_frame(request)
    alone = read_frame(type(request), parts.frame(parts.topics[1:]))
    assert alone == delete_records({"u": {}}, version)


@each_version
async def test_a_response_in_parts_is_the_same_response(version: int) -> None:
    parts = await read(delete_records({"t": {0: 5}}, version))
    frame = response_frame(records_deleted({"t": {0: 0, 3: 6}}, version))
    response = await read_topics_response(parts, frame[LENGTH:], Yielder())
    assert write_topics_response(parts, response) == frame


@each_version
async def test_a_rejection_names_each_partition(version: int) -> None:
    parts = await read(delete_records({"t": {0: 5, 3: 7}}, version))
    rejected = await DELETE_RECORDS.reject(parts, parts.topics[0], 29, Yielder())
    frame = write_topics_response(parts, TopicsResponse([rejected]))
    [topic] = read_frame(response_type(DELETE_RECORDS_KEY, version), frame).topics
    assert topic.name == "t"
    assert {each.partition_index: each.error_code for each in topic.partitions} == dict.fromkeys(
        (0, 3), ErrorCode.topic_authorization_failed
    )
