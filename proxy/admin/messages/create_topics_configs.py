"""Configs in CreateTopics (19), v0-7: taken out of a topic in a request, and put into one in an answer."""

from collections.abc import Callable, Iterable
from typing import Final

from proxy.admin.messages.alter_configs import SET, ConfigOp
from proxy.admin.messages.describe_configs import Entry, beside
from proxy.admin.messages.fields import NO_TAGS, read_nullable, skip_tags, write_nullable, write_tags
from proxy.admin.messages.topic_apis import skip_assignments
from proxy.admin.messages.topics import Fields, Request, Topic, Yielder
from proxy.wire.edit import count, i16, i32, string
from proxy.wire.reader import Reader
from proxy.wire.views import NO_ID

CONFIGS_FROM: Final = 5
"""The first version whose answer has configs."""
TOPIC_ID_FROM: Final = 7
MESSAGE_FROM: Final = 1


async def split(
    request: Request, topic: Topic, ours: Callable[[str], bool], yielder: Yielder
) -> tuple[list[ConfigOp], Topic]:
    """Of a topic in a request, the configs that are ours, and the topic without them."""
    flexible = request.api.flexible(request.version)
    part = topic.part
    reader = Reader([part])
    reader.skip_string(flexible)  # name
    reader.take(6)  # num_partitions, replication_factor
    await skip_assignments(reader, flexible, True, yielder)
    head_end = reader.offset
    taken: list[ConfigOp] = []
    left: list[bytes] = []
    for _ in range(reader.count(flexible)):
        start = reader.offset
        name = reader.string(flexible)
        value = read_nullable(reader, flexible)
        skip_tags(reader, flexible)
        config = part[start : reader.offset]
        if ours(name):
            taken.append(ConfigOp(name, SET, value, config))
        else:
            left.append(config)
        await yielder.step()
    if not taken:
        return taken, topic
    rest = [part[:head_end], count(len(left), flexible), *left, part[reader.offset :]]
    return taken, Topic(topic.fields, b"".join(rest))


def rejection(request: Request, name: str, error_code: int, message: str) -> Topic:
    """A topic in an answer that rejects it."""
    version, flexible = request.version, request.api.flexible(request.version)
    pieces = [string(name, flexible)]
    if version >= TOPIC_ID_FROM:
        pieces.append(NO_ID)
    pieces.append(i16(error_code))
    if version >= MESSAGE_FROM:
        pieces.append(write_nullable(message, flexible))
    if version >= CONFIGS_FROM:
        pieces += [i32(-1), i16(-1), count(0, True), NO_TAGS]  # num_partitions, replication_factor, configs
    return Topic(Fields(name, error_code=error_code), b"".join(pieces))


async def with_entries(request: Request, topic: Topic, entries: Iterable[Entry], yielder: Yielder) -> Topic:
    """A topic in an answer with these configs beside those that it has, or in their place; as it is where the
    answer tells of no configs.
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
        return topic  # The client may not see them.
    theirs: list[tuple[str, bytes]] = []
    for _ in range(number):
        start = reader.offset
        name = reader.string(True)
        reader.skip_string(True)  # value
        reader.take(3)  # read_only, config_source, is_sensitive
        reader.skip_tags()
        theirs.append((name, part[start : reader.offset]))
        await yielder.step()
    configs = [config for _, config in beside(theirs, entries, _config)]
    rest = [part[:head_end], count(len(configs), True), *configs, part[reader.offset :]]
    return Topic(topic.fields, b"".join(rest))


def _config(entry: Entry) -> bytes:
    value = write_nullable(entry.value, True)
    return string(entry.name, True) + value + bytes([0, entry.source, 0]) + write_tags(True)
