"""DeleteTopics (20), v0-6.

v1 throttle_time_ms; v4 flexible; v5 error_message, and rejects single topics for the quota (KIP-599); v6
topics by name or by id (KIP-516).
"""

from typing import Final

from proxy.admin.messages.fields import read_nullable, skip_tags, write_message, write_nullable, write_tags
from proxy.admin.messages.topics import NEVER, TopicFields, TopicsApi
from proxy.admin.yielder import Yielder
from proxy.wire import api_keys
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import i16
from proxy.wire.reader import Reader

MESSAGE_FROM: Final = 5
TOPIC_ID_FROM: Final = 6


class DeleteTopics(TopicsApi):
    versions = InterceptedApi(api_keys.DELETE_TOPICS, newest=6, flexible_from=4)
    strict_from = 5
    throttle_from = 1
    validate_only_from = NEVER

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        if version < TOPIC_ID_FROM:
            return TopicFields(reader.string(self.flexible(version)))
        fields = TopicFields(read_nullable(reader, True), reader.uuid())
        reader.skip_tags()
        return fields

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        flexible = self.flexible(version)
        name = read_nullable(reader, flexible)
        topic_id = reader.uuid() if version >= TOPIC_ID_FROM else NO_ID
        error_code = reader.i16()
        if version >= MESSAGE_FROM:
            reader.skip_string(True)  # error_message
        skip_tags(reader, flexible)
        return TopicFields(name, topic_id, error_code=error_code)

    def write_rejection(self, fields: TopicFields, version: int, message: str | None) -> bytes:
        # A topic that was named by its id is answered by its id alone: only brokers know whether the client
        # may describe it.
        flexible = self.flexible(version)
        topic_id = fields.topic_id if version >= TOPIC_ID_FROM else b""
        text = write_message(message, True) if version >= MESSAGE_FROM else b""
        name = write_nullable(fields.name, flexible)
        return name + topic_id + i16(fields.error_code) + text + write_tags(flexible)


DELETE_TOPICS: Final = DeleteTopics()
