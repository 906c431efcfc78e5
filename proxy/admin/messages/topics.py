"""Requests that change topics, and their answers: taken apart by topic, and put together again.

What a message says of a topic stays the bytes that it came as, unknown tagged fields and all. A message may
name a hundred thousand topics, so reading one lets others have the event loop now and then.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proxy.admin.messages.fields import frame, open_request, open_response, write_tags
from proxy.wire.apis import RequestHeader
from proxy.wire.edit import count, i32
from proxy.wire.intercepted import InterceptedApi
from proxy.wire.reader import Reader
from proxy.wire.views import NO_ID

STEPS: Final = 256
"""Topics, or parts of one, that are worked through before others have their turn."""
NO_COUNT: Final = -1

TopicKey = str | bytes
"""What a topic goes by in a request: its name, or its id where the request gives no name."""


class Yielder:
    """Counts the steps of a long piece of work."""

    def __init__(self) -> None:
        self._steps = 0

    async def step(self) -> None:
        self._steps += 1
        if self._steps % STEPS == 0:
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Fields:
    """What is read about a topic, in a request or in an answer."""

    name: str | None
    topic_id: bytes = NO_ID
    """NO_ID where the message gives none."""
    partitions: int = NO_COUNT
    """CreateTopics: its partitions, in a request NO_COUNT for the broker's default, in an answer NO_COUNT
    where it does not say. CreatePartitions: how many there shall be. Else NO_COUNT."""
    error_code: int = 0
    """0 in a request."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic in a request or in an answer, with the bytes that say it."""

    fields: Fields
    part: bytes

    @property
    def key(self) -> TopicKey:
        name = self.fields.name
        return self.fields.topic_id if name is None else name


class MutationApi:
    """One of the APIs, and where its versions differ."""

    versions: InterceptedApi
    strict_from: int
    """The first version whose topics are rejected one by one; older ones are only made to wait (KIP-599)."""
    throttle_from: int
    """The first version whose answer has throttle_time_ms, in front of the topics."""
    validate_only_from: int

    def flexible(self, version: int) -> bool:
        """Whether the messages and both their headers have compact strings and tagged fields."""
        return version >= self.versions.flexible_from

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> Fields:
        """Read the next topic of a request."""
        raise NotImplementedError

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> Fields:
        """Read the next topic of an answer."""
        raise NotImplementedError

    def write_rejection(self, fields: Fields, version: int) -> bytes:
        """A topic's part of an answer that has an error and no message; from `strict_from` on."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Request:
    """A request in parts."""

    api: MutationApi
    version: int
    correlation_id: int
    topics: list[Topic]
    validate_only: bool
    payload: bytes
    """Header and body."""
    head_end: int
    """Where the number of topics stands in it."""
    tail_start: int
    """Where the topics end."""

    @property
    def strict(self) -> bool:
        return self.version >= self.api.strict_from

    @property
    def tells_throttle(self) -> bool:
        """Whether its answer can tell the client to wait."""
        return self.version >= self.api.throttle_from

    def frame(self, topics: Sequence[Topic]) -> bytes:
        """The request with these topics only, as a whole frame."""
        if len(topics) == len(self.topics):
            return frame([self.payload])
        return frame([self.with_topics(topics)])

    def with_topics(self, topics: Sequence[Topic]) -> bytes:
        """The request with these topics in place of its own: header and body."""
        head, tail = self.payload[: self.head_end], self.payload[self.tail_start :]
        return b"".join(_parts(head, topics, tail, self.api.flexible(self.version)))

    def reject(self, topic: Topic, error_code: int) -> Topic:
        """The topic as it stands in an answer that rejects it."""
        fields = Fields(topic.fields.name, topic.fields.topic_id, error_code=error_code)
        return Topic(fields, self.api.write_rejection(fields, self.version))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in parts."""

    topics: list[Topic]
    throttle_time_ms: int
    """0 where the version has none."""


async def read_request(api: MutationApi, header: RequestHeader, payload: bytes, yielder: Yielder) -> Request:
    """A request out of its header and body. Raises Malformed."""
    version = header.api_version
    flexible = api.flexible(version)
    reader = open_request(payload, flexible)
    head_end = reader.offset
    topics: list[Topic] = []
    for _ in range(reader.count(flexible)):
        start = reader.offset
        fields = await api.read_topic(reader, version, yielder)
        topics.append(Topic(fields, payload[start : reader.offset]))
        await yielder.step()
    tail_start = reader.offset
    reader.take(4)  # timeout_ms
    validate_only = version >= api.validate_only_from and reader.u8() != 0
    return Request(api, version, header.correlation_id, topics, validate_only, payload, head_end, tail_start)


async def read_answer(request: Request, payload: bytes, yielder: Yielder) -> Answer:
    """The broker's answer to a request out of its header and body. Raises Malformed."""
    flexible = request.api.flexible(request.version)
    reader = open_response(payload, flexible)
    throttle_time_ms = reader.i32() if request.tells_throttle else 0
    topics: list[Topic] = []
    for _ in range(reader.count(flexible)):
        start = reader.offset
        fields = await request.api.read_result(reader, request.version, yielder)
        topics.append(Topic(fields, payload[start : reader.offset]))
        await yielder.step()
    return Answer(topics, throttle_time_ms)


def write_answer(request: Request, topics: Sequence[Topic], throttle_time_ms: int) -> bytes:
    """The answer to a request with these topics, as a whole frame; the time where the version has it."""
    flexible = request.api.flexible(request.version)
    head = i32(request.correlation_id) + write_tags(flexible)
    if request.tells_throttle:
        head += i32(throttle_time_ms)
    return frame(_parts(head, topics, write_tags(flexible), flexible))


def _parts(head: bytes, topics: Sequence[Topic], tail: bytes, flexible: bool) -> list[bytes]:
    return [head, count(len(topics), flexible), *[topic.part for topic in topics], tail]
