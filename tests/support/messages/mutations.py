"""CreateTopics, DeleteTopics and CreatePartitions as frames, at every version. kio lacks the oldest ones."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from kio.schema.errors import ErrorCode

from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Bytes
from proxy.relay.exchange import Client, Exchange
from proxy.relay.intercepted import Intercepted
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.reader import Reader, text
from tests.support.messages.kio_messages import (
    framed,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.messages.old_messages import array, number, request, string
from tests.support.messages.requests import build, part

Value = TypeVar("Value")
CREATE: Final = 19
DELETE: Final = 20
GROW: Final = 37
FIRST_CREATE_OF_KIO: Final = 2
SECONDS_30: Final = timedelta(seconds=30)
NO_TIME: Final = timedelta(0)
ADDRESS: Final = "127.0.0.1"


def to_end(work: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine in an event loop of its own; return its result."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def intercepted(frame: bytes, user: str = "ANONYMOUS", usage: UsageLedger | None = None) -> Intercepted:
    """A request as the relay passes it to the shell; `usage` counts its client's use of broker 1."""
    reader = Reader([frame], LENGTH_SIZE)
    header = read_request_header(reader)
    client_id = text(header.raw_client_id)
    used = None if usage is None else usage.client(1, user, client_id)
    client = Client(user, client_id, ADDRESS, Bytes(), header.raw_client_id, used)
    return Intercepted(Exchange(header.correlation_id, client, local=True), header, frame[LENGTH_SIZE:])


def create_topics(
    topics: Mapping[str, int | Sequence[Sequence[int]]],
    version: int = 7,
    *,
    validate_only: bool = False,
    replicas: int = 1,
) -> Any:
    """A CreateTopics request; by name the partitions (-1: the broker's default), or their brokers."""
    schema = request_type(CREATE, version)
    creatable = []
    for name, partitions in topics.items():
        placed = () if isinstance(partitions, int) else partitions
        assignments = tuple(
            part(schema, "CreatableReplicaAssignment", partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in enumerate(placed)
        )
        creatable.append(
            part(
                schema,
                "CreatableTopic",
                name=name,
                num_partitions=-1 if placed else partitions,
                replication_factor=-1 if placed else replicas,
                assignments=assignments,
                configs=(part(schema, "CreatableTopicConfig", name="retention.ms", value="60000"),),
            )
        )
    return build(schema, topics=tuple(creatable), timeout=SECONDS_30, validate_only=validate_only)


def delete_topics(names: Sequence[str] = (), version: int = 6, *, ids: Sequence[UUID] = ()) -> Any:
    """A DeleteTopics request by name, and by topic id (v6)."""
    schema = request_type(DELETE, version)
    if version < 6:
        return build(schema, topic_names=tuple(names), timeout=SECONDS_30)
    topics = [part(schema, "DeleteTopicState", name=name, topic_id=None) for name in names]
    topics += [part(schema, "DeleteTopicState", name=None, topic_id=topic_id) for topic_id in ids]
    return build(schema, topics=tuple(topics), timeout=SECONDS_30)


def create_partitions(
    topics: Mapping[str, int],
    version: int = 3,
    *,
    validate_only: bool = False,
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
) -> Any:
    """A CreatePartitions request; by name the new number of partitions, and the brokers of the new ones."""
    schema = request_type(GROW, version)
    placed = {
        name: tuple(part(schema, "CreatePartitionsAssignment", broker_ids=tuple(brokers)) for brokers in each)
        for name, each in (assignments or {}).items()
    }
    grown = tuple(
        part(schema, "CreatePartitionsTopic", name=name, count=count, assignments=placed.get(name))
        for name, count in topics.items()
    )
    return build(schema, topics=grown, timeout=SECONDS_30, validate_only=validate_only)


Codes = Mapping[str, int]
"""Error codes by topic."""


def created(codes: Codes, version: int = 7, *, partitions: Mapping[str, int] | None = None) -> Any:
    """A CreateTopicsResponse; `partitions`: the numbers in versions that have the field."""
    schema = response_type(CREATE, version)
    topics = tuple(
        part(
            schema,
            "CreatableTopicResult",
            name=name,
            topic_id=topic_id(name) if code == 0 else None,
            error_code=ErrorCode(code),
            error_message=None if code == 0 else "because",
            num_partitions=(partitions or {}).get(name, -1),
            replication_factor=-1,
            configs=(),
        )
        for name, code in codes.items()
    )
    return build(schema, topics=topics, throttle_time=NO_TIME)


def deleted(codes: Codes, version: int = 6) -> Any:
    """A DeleteTopicsResponse; from v6 on with names and ids, whichever the request has."""
    schema = response_type(DELETE, version)
    topics = tuple(
        part(
            schema,
            "DeletableTopicResult",
            name=name,
            topic_id=topic_id(name),
            error_code=ErrorCode(code),
        )
        for name, code in codes.items()
    )
    return build(schema, responses=topics, throttle_time=NO_TIME)


def grown(codes: Codes, version: int = 3) -> Any:
    """A CreatePartitionsResponse."""
    schema = response_type(GROW, version)
    topics = tuple(
        part(schema, "CreatePartitionsTopicResult", name=name, error_code=ErrorCode(code), error_message=None)
        for name, code in codes.items()
    )
    return build(schema, results=topics, throttle_time=NO_TIME)


def topic_id(name: str) -> UUID:
    """The id of a topic in made-up responses."""
    return UUID(bytes=name.encode()[:16].ljust(16, b"\1"))


def results(message: Any) -> list[tuple[str | None, int]]:
    """The names and error codes of a response to any of the three APIs, in its order."""
    found = next(
        getattr(message, name) for name in ("topics", "responses", "results") if hasattr(message, name)
    )
    return [(topic.name, topic.error_code.value) for topic in found]


def old_create_topics(
    topics: Mapping[str, int], version: int, correlation_id: int = 1, client_id: str = "client"
) -> bytes:
    """A CreateTopics request v0 or v1 as a frame, each topic with one config."""
    assert version < FIRST_CREATE_OF_KIO
    config = array([string("retention.ms") + string("60000")])
    body = array(
        [
            string(name) + number(count, 4) + number(1, 2) + array([]) + config
            for name, count in topics.items()
        ]
    )
    validate_only = b"\0" if version >= 1 else b""
    return request(CREATE, version, correlation_id, client_id, body + number(30_000, 4) + validate_only)


def old_delete_topics(names: Sequence[str], correlation_id: int = 1, client_id: str = "client") -> bytes:
    """A DeleteTopics request v0 as a frame."""
    body = array([string(name) for name in names]) + number(30_000, 4)
    return request(DELETE, 0, correlation_id, client_id, body)


def old_response(codes: Codes, messages: bool = False, correlation_id: int = 1) -> bytes:
    """A CreateTopicsResponse v0 (v1 with `messages`) or DeleteTopicsResponse v0 as a frame."""
    message = number(-1, 2) if messages else b""
    topics = array([string(name) + number(code, 2) + message for name, code in codes.items()])
    return framed(number(correlation_id, 4) + topics)


def frame_of(message: Any, correlation_id: int = 1, client_id: str = "client") -> bytes:
    """A request as a frame."""
    return request_frame(message, correlation_id, client_id)


def payload_of(message: Any, correlation_id: int = 1) -> bytes:
    """A response's header and body."""
    return response_frame(message, correlation_id)[LENGTH_SIZE:]
