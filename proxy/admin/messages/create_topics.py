"""CreateTopics (19), v0-7.

v1 validate_only, and error_message in the response; v2 throttle_time_ms; v5 flexible, and partitions and
configs in the response (KIP-525); v6 rejects single topics for the quota (KIP-599); v7 topic ids in the
response.
"""

from collections.abc import Callable, Container, Iterable
from typing import Final

from proxy.admin.messages.alter_configs import SET, ConfigOp
from proxy.admin.messages.describe_configs import ConfigEntry, merge_configs
from proxy.admin.messages.fields import (
    read_nullable,
    skip_tags,
    write_message,
    write_nullable,
    write_tags,
)
from proxy.admin.messages.topics import Topic, TopicFields, TopicsApi, TopicsRequest, skip_assignments
from proxy.admin.yielder import Yielder
from proxy.wire import api_keys
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import NO_TAGS, count, i16, i32, string
from proxy.wire.reader import Reader

MESSAGE_FROM: Final = 1
CONFIGS_FROM: Final = 5
"""The first version with partitions and configs in the response."""
TOPIC_ID_FROM: Final = 7


class CreateTopics(TopicsApi):
    versions = InterceptedApi(api_keys.CREATE_TOPICS, newest=7, flexible_from=5)
    strict_from = 6
    throttle_from = 2
    validate_only_from = 1
    validates = True

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        partitions = reader.i32()
        reader.take(2)  # replication_factor
        assigned = await skip_assignments(reader, flexible, True, yielder)
        configs = reader.count(flexible)
        for _ in range(configs):
            reader.skip_string(flexible)  # name
            reader.skip_string(flexible)  # value
            skip_tags(reader, flexible)
            await yielder.step()
        skip_tags(reader, flexible)
        return TopicFields(name, partitions=assigned if assigned > 0 else partitions, configs=configs)

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        flexible = self.flexible(version)
        name = reader.string(flexible)
        topic_id = reader.uuid() if version >= TOPIC_ID_FROM else NO_ID
        error_code = reader.i16()
        if version >= MESSAGE_FROM:
            reader.skip_string(flexible)  # error_message
        if version < CONFIGS_FROM:
            return TopicFields(name, topic_id, error_code=error_code)
        partitions = reader.i32()
        reader.take(2)  # replication_factor
        for _ in range(reader.count(True)):
            _skip_described_config(reader)
            await yielder.step()
        reader.skip_tags()
        return TopicFields(name, topic_id, partitions, error_code)

    def write_rejection(self, fields: TopicFields, version: int, message: str | None) -> bytes:
        flexible = self.flexible(version)
        pieces = [string(fields.name or "", flexible)]
        if version >= TOPIC_ID_FROM:
            pieces.append(NO_ID)
        pieces.append(i16(fields.error_code))
        if version >= MESSAGE_FROM:
            pieces.append(write_message(message, flexible))
        if version >= CONFIGS_FROM:
            # num_partitions, replication_factor, configs
            pieces += [i32(-1), i16(-1), count(0, True), NO_TAGS]
        return b"".join(pieces)


CREATE_TOPICS: Final = CreateTopics()


async def split_configs(
    request: TopicsRequest,
    topic: Topic,
    wanted: Callable[[str], bool],
    yielder: Yielder,
    forwarded: Container[str] = (),
) -> tuple[list[ConfigOp], Topic]:
    """Return the `wanted` configs of a topic in a request, and the topic without them, except for those that
    are `forwarded` nevertheless.
    """
    flexible = request.flexible
    part = topic.part
    reader = Reader([part])
    reader.skip_string(flexible)  # name
    reader.take(6)  # num_partitions, replication_factor
    await skip_assignments(reader, flexible, True, yielder)
    head_end = reader.offset
    taken: list[ConfigOp] = []
    left: list[bytes] = []
    number = reader.count(flexible)
    for _ in range(number):
        start = reader.offset
        name = reader.string(flexible)
        value = read_nullable(reader, flexible)
        skip_tags(reader, flexible)
        config = part[start : reader.offset]
        ours = wanted(name)
        if ours:
            taken.append(ConfigOp(name, SET, value, config))
        if not ours or name in forwarded:
            left.append(config)
        await yielder.step()
    if len(left) == number:
        return taken, topic
    rest = [part[:head_end], count(len(left), flexible), *left, part[reader.offset :]]
    return taken, Topic(topic.fields, b"".join(rest))


async def add_configs(
    request: TopicsRequest, topic: Topic, entries: Iterable[ConfigEntry], yielder: Yielder
) -> Topic:
    """Return a topic of a response with these configs added, in place of its own of the same names.

    Return it as it is if the response has no configs, or not for this client.
    """
    if request.version < CONFIGS_FROM:
        return topic
    part = topic.part
    reader = Reader([part])
    reader.skip_string(True)  # name
    reader.take(16 if request.version >= TOPIC_ID_FROM else 0)
    reader.take(2)  # error_code
    reader.skip_string(True)  # error_message
    reader.take(6)  # num_partitions, replication_factor
    head_end = reader.offset
    number = reader.length(True)
    if number < 0:
        # A broker sends null if the client may not describe the topic's configs.
        return topic
    own: list[tuple[str, bytes]] = []
    for _ in range(number):
        start = reader.offset
        name = _skip_described_config(reader)
        own.append((name, part[start : reader.offset]))
        await yielder.step()
    configs = [config for _, config in merge_configs(own, entries, _write_config)]
    rest = [part[:head_end], count(len(configs), True), *configs, part[reader.offset :]]
    return Topic(topic.fields, b"".join(rest))


def _skip_described_config(reader: Reader) -> str:
    """Skip a config in a response; return its name."""
    name = reader.string(True)
    reader.skip_string(True)  # value
    reader.take(3)  # read_only, config_source, is_sensitive
    reader.skip_tags()
    return name


def _write_config(entry: ConfigEntry) -> bytes:
    value = write_nullable(entry.value, True)
    return string(entry.name, True) + value + bytes([0, entry.source, 0]) + write_tags(True)
