"""Requests that create, delete or grow topics, and their responses, read topic by topic.

A topic keeps the bytes that it arrived as, unknown tagged fields included, so that a request or response can
be written with other topics. A message may name a hundred thousand topics: reading gives the event loop
turns.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Final

from proxy.admin.messages.fields import frame, open_request, open_response, skip_tags, write_tags
from proxy.admin.yielder import Yielder
from proxy.upstream.partitions import TopicKey
from proxy.wire.apis.api import RequestHeader
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import count, i32
from proxy.wire.reader import Reader

NO_COUNT: Final = -1
"""As in Kafka's messages: no number of partitions is given."""
VALIDATE_ONLY_AT: Final = 4
"""The offset of validate_only behind the topics of a request, after timeout_ms."""
NEVER: Final = 1 << 15
"""Above every version: for a field that no version has."""


@dataclass(frozen=True, slots=True)
class TopicFields:
    """What the proxy reads of a topic in a request or in a response."""

    name: str | None
    topic_id: bytes = NO_ID
    """NO_ID if the message has none."""
    partitions: int = NO_COUNT
    """CreateTopics request: the topic's partitions, or NO_COUNT for the broker's default; response: the
    partitions, or NO_COUNT in versions without them. CreatePartitions request: the new total. Otherwise
    NO_COUNT.
    """
    error_code: int = 0
    """0 in a request."""
    assigned: int = NO_COUNT
    """CreatePartitions request: the number of new partitions that are assigned to brokers, or NO_COUNT if the
    controller is to assign them. Otherwise NO_COUNT.
    """
    configs: int = 0
    """CreateTopics request: the number of configs. Otherwise 0."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic in a request or in a response, with its bytes."""

    fields: TopicFields
    part: bytes

    @property
    def key(self) -> TopicKey:
        """The topic's name, or its id if the message has no name."""
        name = self.fields.name
        return self.fields.topic_id if name is None else name


class TopicsApi:
    """An API whose requests are lists of topics, and how its versions differ."""

    versions: InterceptedApi
    strict_from: int
    """The first version that can reject single topics for the quota; older ones only throttle (KIP-599)."""
    throttle_from: int
    """The first version with throttle_time_ms, which stands before the topics in the response."""
    validate_only_from: int
    validates: bool = False
    """Whether the broker can validate topics, so that their own errors take precedence over the quota."""
    after_quota: frozenset[int] = frozenset()
    """Errors of topics with a cost that a controller finds only after it has checked the quota."""

    def flexible(self, version: int) -> bool:
        """Whether the messages and both headers have compact strings and tagged fields."""
        return version >= self.versions.flexible_from

    async def read_topic(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        """Read the next topic of a request."""
        raise NotImplementedError

    async def read_result(self, reader: Reader, version: int, yielder: Yielder) -> TopicFields:
        """Read the next topic of a response."""
        raise NotImplementedError

    def write_rejection(self, fields: TopicFields, version: int, message: str | None) -> bytes:
        """Encode a topic of a response with the error_code of `fields`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TopicsRequest:
    """A request, read topic by topic."""

    api: TopicsApi
    version: int
    correlation_id: int
    topics: list[Topic]
    validate_only: bool
    payload: bytes
    """Header and body."""
    head: bytes
    """The bytes before the number of topics."""
    tail: bytes
    """The bytes after the topics."""

    @property
    def flexible(self) -> bool:
        return self.api.flexible(self.version)

    @property
    def strict(self) -> bool:
        """Whether the quota rejects single topics."""
        return self.version >= self.api.strict_from

    @property
    def has_throttle_time(self) -> bool:
        """Whether its response has throttle_time_ms."""
        return self.version >= self.api.throttle_from

    def with_topics(self, topics: list[Topic]) -> "TopicsRequest":
        """Return the request with these topics in place of its own."""
        payload = b"".join(_join(self.head, topics, self.tail, self.flexible))
        return replace(self, topics=topics, payload=payload)

    def validation(self, topics: Sequence[Topic]) -> bytes:
        """Return a frame with which the broker only validates these topics. The version has validate_only."""
        tail = self.tail[:VALIDATE_ONLY_AT] + b"\1" + self.tail[VALIDATE_ONLY_AT + 1 :]
        return frame(_join(self.head, topics, tail, self.flexible))

    def frame(self, topics: Sequence[Topic]) -> bytes:
        """Return the frame of the request with these of its topics only."""
        if len(topics) == len(self.topics):
            return frame([self.payload])
        return frame(_join(self.head, topics, self.tail, self.flexible))

    def reject(self, topic: Topic, error_code: int, message: str | None = None) -> Topic:
        """Return a topic of the request as the response has it, with an error."""
        fields = TopicFields(topic.fields.name, topic.fields.topic_id, error_code=error_code)
        return Topic(fields, self.api.write_rejection(fields, self.version, message))


@dataclass(frozen=True, slots=True)
class TopicsResponse:
    """A response, read topic by topic."""

    topics: list[Topic]
    throttle_time_ms: int = 0
    """0 in versions without it."""


async def read_topics_request(
    api: TopicsApi, header: RequestHeader, payload: bytes, yielder: Yielder
) -> TopicsRequest:
    """Read a request from its header and body. Raises Malformed."""
    version = header.api_version
    flexible = api.flexible(version)
    reader = open_request(header, payload, flexible)
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
    return TopicsRequest(
        api,
        version,
        header.correlation_id,
        topics,
        validate_only,
        payload,
        head=payload[:head_end],
        tail=payload[tail_start:],
    )


async def read_topics_response(request: TopicsRequest, payload: bytes, yielder: Yielder) -> TopicsResponse:
    """Read the broker's response to a request from its header and body. Raises Malformed."""
    reader = open_response(payload, request.flexible)
    throttle_time_ms = reader.i32() if request.has_throttle_time else 0
    topics: list[Topic] = []
    for _ in range(reader.count(request.flexible)):
        start = reader.offset
        fields = await request.api.read_result(reader, request.version, yielder)
        topics.append(Topic(fields, payload[start : reader.offset]))
        await yielder.step()
    return TopicsResponse(topics, throttle_time_ms)


async def in_order(requested: Sequence[Topic], topics: Sequence[Topic], yielder: Yielder) -> list[Topic]:
    """Return the topics of a response in the order of the request; those that it does not name come last."""
    names: set[TopicKey] = set()
    async for some in yielder.slices(requested):
        names.update([topic.key for topic in some])
    left: dict[TopicKey, list[Topic]] = {}
    async for some in yielder.slices(topics):
        for topic in some:
            left.setdefault(requested_key(topic, names), []).append(topic)
    ordered: list[Topic] = []
    async for some in yielder.slices(requested):
        for topic in some:
            ordered += left.pop(topic.key, ())
    async for rest in yielder.slices(list(left.values())):
        for others in rest:
            ordered += others
    return ordered


def requested_key(topic: Topic, requested: Container[TopicKey]) -> TopicKey:
    """Return the key under which a topic of a response was requested: it may have both a name and an id."""
    topic_id = topic.fields.topic_id
    return topic_id if topic_id in requested else topic.key


def write_topics_response(request: TopicsRequest, response: TopicsResponse) -> bytes:
    """Return the frame of the response to a request."""
    head = i32(request.correlation_id) + write_tags(request.flexible)
    if request.has_throttle_time:
        head += i32(response.throttle_time_ms)
    return frame(_join(head, response.topics, write_tags(request.flexible), request.flexible))


async def skip_assignments(reader: Reader, flexible: bool, numbered: bool, yielder: Yielder) -> int:
    """Skip a replica assignment, whose partitions are `numbered` or not.

    Return its number of partitions, or NO_COUNT if it is null.
    """
    partitions = reader.nullable_count(flexible)
    for _ in range(partitions):
        if numbered:
            reader.take(4)  # partition_index
        reader.skip(4 * reader.count(flexible))  # broker_ids
        skip_tags(reader, flexible)
        await yielder.step()
    return partitions


def _join(head: bytes, topics: Sequence[Topic], tail: bytes, flexible: bool) -> list[bytes]:
    return [head, count(len(topics), flexible), *[topic.part for topic in topics], tail]
