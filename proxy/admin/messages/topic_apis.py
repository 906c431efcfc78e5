"""The three APIs that a controller mutation quota counts (KIP-599).

CreateTopics (19)       v0-7   v1 validate_only; v2 throttle_time_ms; v5 flexible, partitions and configs
                               in the answer; v7 topic ids in the answer
DeleteTopics (20)       v0-6   v1 throttle_time_ms; v4 flexible; v5 error_message; v6 by name or topic id
CreatePartitions (37)   v0-3   v2 flexible
"""

from typing import Final

from proxy.admin.messages.fields import NO_TAGS, read_nullable, skip_tags
from proxy.admin.messages.topics import Fields, MutationApi, Yielder
from proxy.wire.edit import i16, i32, string, uvarint
from proxy.wire.intercepted import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from proxy.wire.reader import Reader
from proxy.wire.views import NO_ID

_NULL: Final = uvarint(0)
"""A compact string or array that is null, and _EMPTY an array without elements. A rejection needs no older
form: versions that reject are flexible."""
_EMPTY: Final = uvarint(1)
_NEVER: Final = 1 << 15


class CreateTopics(MutationApi):
    versions = CREATE_TOPICS
    strict_from = 6
    throttle_from = 2
    validate_only_from = 1

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> Fields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        partitions = reader.i32()
        reader.take(2)  # replication_factor
        assigned = await skip_assignments(reader, flexible, True, yielder)
        for _ in range(reader.count(flexible)):
            reader.skip_string(flexible)  # name
            reader.skip_string(flexible)  # value
            skip_tags(reader, flexible)
            await yielder.step()
        skip_tags(reader, flexible)
        return Fields(name, partitions=assigned or partitions)

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> Fields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        topic_id = reader.uuid() if version >= 7 else NO_ID
        error_code = reader.i16()
        if version >= 1:
            reader.skip_string(flexible)  # error_message
        if version < 5:
            return Fields(name, topic_id, error_code=error_code)
        partitions = reader.i32()
        reader.take(2)  # replication_factor
        for _ in range(reader.count(True)):
            reader.skip_string(True)  # name
            reader.skip_string(True)  # value
            reader.take(3)  # read_only, config_source, is_sensitive
            reader.skip_tags()
            await yielder.step()
        reader.skip_tags()
        return Fields(name, topic_id, partitions, error_code)

    def write_rejection(self, fields: Fields, version: int) -> bytes:
        topic_id = NO_ID if version >= 7 else b""
        unknown = i32(-1) + i16(-1)  # num_partitions, replication_factor
        return _name(fields) + topic_id + i16(fields.error_code) + _NULL + unknown + _EMPTY + NO_TAGS


class DeleteTopics(MutationApi):
    versions = DELETE_TOPICS
    strict_from = 5
    throttle_from = 1
    validate_only_from = _NEVER

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> Fields:
        if version < 6:
            return Fields(reader.string(self.flexible(version)))
        fields = Fields(read_nullable(reader, True), reader.uuid())
        reader.skip_tags()
        return fields

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> Fields:
        flexible = self.flexible(version)
        name = read_nullable(reader, flexible)
        topic_id = reader.uuid() if version >= 6 else NO_ID
        error_code = reader.i16()
        if version >= 5:
            reader.skip_string(True)  # error_message
        skip_tags(reader, flexible)
        return Fields(name, topic_id, error_code=error_code)

    def write_rejection(self, fields: Fields, version: int) -> bytes:
        # A topic that goes by its id is not given its name: whether the client may know it, brokers decide.
        topic_id = fields.topic_id if version >= 6 else b""
        return _name(fields) + topic_id + i16(fields.error_code) + _NULL + NO_TAGS


class CreatePartitions(MutationApi):
    versions = CREATE_PARTITIONS
    strict_from = 3
    throttle_from = 0
    validate_only_from = 0

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> Fields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        partitions = reader.i32()
        await skip_assignments(reader, flexible, False, yielder)
        skip_tags(reader, flexible)
        return Fields(name, partitions=partitions)

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> Fields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        error_code = reader.i16()
        reader.skip_string(flexible)  # error_message
        skip_tags(reader, flexible)
        return Fields(name, error_code=error_code)

    def write_rejection(self, fields: Fields, version: int) -> bytes:
        return _name(fields) + i16(fields.error_code) + _NULL + NO_TAGS


APIS: Final[dict[int, MutationApi]] = {
    api.versions.key: api for api in (CreateTopics(), DeleteTopics(), CreatePartitions())
}
"""By API key."""


async def skip_assignments(reader: Reader, flexible: bool, numbered: bool, yielder: Yielder) -> int:
    """Step over partitions with their brokers, each with its number or not; return how many there are."""
    number = reader.count(flexible)
    for _ in range(number):
        if numbered:
            reader.take(4)
        reader.skip(4 * reader.count(flexible))  # broker_ids
        skip_tags(reader, flexible)
        await yielder.step()
    return number


def _name(fields: Fields) -> bytes:
    return _NULL if fields.name is None else string(fields.name, True)
