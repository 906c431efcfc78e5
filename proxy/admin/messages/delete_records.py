"""DeleteRecords (21), v0-2: v2 flexible."""

from typing import Final

from proxy.admin.messages.fields import skip_tags, write_tags
from proxy.admin.messages.topics import NEVER, Topic, TopicFields, TopicsApi, TopicsRequest
from proxy.admin.yielder import Yielder
from proxy.wire import api_keys
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.edit import count, i16, i32, string
from proxy.wire.reader import Reader

_NO_OFFSET: Final = b"\xff" * 8
"""The low_watermark of a rejected partition: -1."""


class DeleteRecords(TopicsApi):
    versions = InterceptedApi(api_keys.DELETE_RECORDS, newest=2, flexible_from=2)
    strict_from = NEVER
    throttle_from = 0
    validate_only_from = NEVER

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        for _ in range(reader.count(flexible)):
            reader.take(12)  # partition_index, offset
            skip_tags(reader, flexible)
            await yielder.step()
        skip_tags(reader, flexible)
        return TopicFields(name)

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        for _ in range(reader.count(flexible)):
            reader.take(14)  # partition_index, low_watermark, error_code
            skip_tags(reader, flexible)
            await yielder.step()
        skip_tags(reader, flexible)
        return TopicFields(name)

    async def reject(self, request: TopicsRequest, topic: Topic, error_code: int, yielder: Yielder) -> Topic:
        """Return a topic of the request as the response has it, with an error for each partition."""
        flexible = request.flexible
        reader = Reader([topic.part])
        reader.skip_string(flexible)  # name
        number = reader.count(flexible)
        pieces = [string(topic.fields.name or "", flexible), count(number, flexible)]
        end = _NO_OFFSET + i16(error_code) + write_tags(flexible)
        for _ in range(number):
            pieces.append(i32(reader.i32()) + end)
            reader.take(8)  # offset
            skip_tags(reader, flexible)
            await yielder.step()
        pieces.append(write_tags(flexible))
        return Topic(TopicFields(topic.fields.name, error_code=error_code), b"".join(pieces))


DELETE_RECORDS: Final = DeleteRecords()
