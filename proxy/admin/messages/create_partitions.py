"""CreatePartitions (37), v0-3: v2 flexible; v3 rejects single topics for the quota (KIP-599)."""

from typing import Final

from proxy.admin.messages.fields import skip_tags, write_message, write_nullable, write_tags
from proxy.admin.messages.topics import TopicFields, TopicsApi, skip_assignments
from proxy.admin.yielder import Yielder
from proxy.wire import api_keys
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.edit import i16
from proxy.wire.error_codes import INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR
from proxy.wire.reader import Reader


class CreatePartitions(TopicsApi):
    versions = InterceptedApi(api_keys.CREATE_PARTITIONS, newest=3, flexible_from=2)
    strict_from = 3
    throttle_from = 0
    validate_only_from = 0
    validates = True
    after_quota = frozenset([INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT])

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        partitions = reader.i32()
        assigned = await skip_assignments(reader, flexible, False, yielder)
        skip_tags(reader, flexible)
        return TopicFields(name, partitions=partitions, assigned=assigned)

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        error_code = reader.i16()
        reader.skip_string(flexible)  # error_message
        skip_tags(reader, flexible)
        return TopicFields(name, error_code=error_code)

    def write_rejection(self, fields: TopicFields, version: int, message: str | None) -> bytes:
        flexible = self.flexible(version)
        name = write_nullable(fields.name, flexible)
        return name + i16(fields.error_code) + write_message(message, flexible) + write_tags(flexible)


CREATE_PARTITIONS: Final = CreatePartitions()
