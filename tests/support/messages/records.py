"""DeleteRecords, at every version that kio knows."""

from collections.abc import Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from tests.support.messages.kio_messages import request_type, response_type
from tests.support.messages.mutations import NO_TIME, SECONDS_30
from tests.support.messages.requests import build, part

DELETE_RECORDS_KEY: Final = 21
Numbers = Mapping[str, Mapping[int, int]]
"""By topic and partition: the offset before which records are deleted, or an error code."""


def delete_records(topics: Numbers, version: int = 2) -> Any:
    schema = request_type(DELETE_RECORDS_KEY, version)
    asked = tuple(
        part(
            schema,
            "DeleteRecordsTopic",
            name=name,
            partitions=tuple(
                part(schema, "DeleteRecordsPartition", partition_index=index, offset=offset)
                for index, offset in offsets.items()
            ),
        )
        for name, offsets in topics.items()
    )
    return build(schema, topics=asked, timeout=SECONDS_30)


def records_deleted(topics: Numbers, version: int = 2) -> Any:
    schema = response_type(DELETE_RECORDS_KEY, version)
    told = tuple(
        part(
            schema,
            "DeleteRecordsTopicResult",
            name=name,
            partitions=tuple(
                part(
                    schema,
                    "DeleteRecordsPartitionResult",
                    partition_index=index,
                    low_watermark=9,
                    error_code=ErrorCode(code),
                )
                for index, code in codes.items()
            ),
        )
        for name, codes in topics.items()
    )
    return build(schema, throttle_time=NO_TIME, topics=told)
