"""ProtectedTopicsGate: rejects what clients ask of the topics that the proxy itself writes.

CreateTopics, DeleteTopics, DeleteRecords, CreatePartitions, AlterConfigs and IncrementalAlterConfigs get
TOPIC_AUTHORIZATION_FAILED for these topics, as from a broker whose ACLs protect them. The rest of a request
goes on to its handler. Produce requests are rejected by the relay (ProduceGate).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.broker import Broker, Reply
from proxy.admin.configs.plan import TOPIC_TYPE
from proxy.admin.messages.alter_configs import (
    ALTER_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    AlterResult,
    read_alter_request,
    read_alter_response,
    write_alter_response,
    write_result,
)
from proxy.admin.messages.create_partitions import CREATE_PARTITIONS
from proxy.admin.messages.create_topics import CREATE_TOPICS
from proxy.admin.messages.delete_records import DELETE_RECORDS
from proxy.admin.messages.delete_topics import DELETE_TOPICS
from proxy.admin.messages.fields import MAX_REQUEST_BYTES
from proxy.admin.messages.topics import (
    Topic,
    TopicsApi,
    TopicsRequest,
    TopicsResponse,
    read_topics_request,
    read_topics_response,
    write_topics_response,
)
from proxy.admin.yielder import Yielder
from proxy.quota.identity import client_key
from proxy.relay.intercepted import Intercepted
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.protected_topics import MESSAGE, ProtectedTopics

_TOPICS: Final[dict[int, TopicsApi]] = {
    api.versions.key: api for api in (CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS)
}
_CONFIGS: Final = {api.key: api for api in (ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS)}
API_KEYS: Final = frozenset([*_TOPICS, *_CONFIGS])
"""The APIs whose requests change topics."""
SEARCH_BYTES: Final = 8 << 10
"""Bytes that are searched in a step: a few microseconds."""
Handle = Callable[[Intercepted, Broker], Awaitable[Reply]]


class ProtectedTopicsGate:
    """Answers for the protected topics, and gives the rest of a request to the handler of its API."""

    def __init__(self, topics: ProtectedTopics) -> None:
        self._topics: Final = topics

    async def answer(self, intercepted: Intercepted, broker: Broker, handle: Handle) -> Reply:
        """Answer a request: protected topics with an error, the rest with what `handle` returns.

        Raises ProtocolError if the request does not parse, and what `handle` raises.
        """
        if not await self._occur(intercepted):
            return await handle(intercepted, broker)
        api_key = intercepted.header.api_key
        (_CONFIGS[api_key] if api_key in _CONFIGS else _TOPICS[api_key].versions).check_version(
            intercepted.header.api_version
        )
        if len(intercepted.frame) > MAX_REQUEST_BYTES:
            raise Malformed(
                f"a request of {len(intercepted.frame)} bytes names a topic of the proxy; "
                f"such a request may have {MAX_REQUEST_BYTES} bytes at most"
            )
        if api_key in _CONFIGS:
            return await self._alter(intercepted, broker, handle)
        return await self._change(_TOPICS[api_key], intercepted, broker, handle)

    async def _occur(self, intercepted: Intercepted) -> bool:
        """Whether the bytes of a protected name or id occur anywhere: only then is the request read here."""
        frame = intercepted.frame
        yielder = Yielder(client_key(intercepted.exchange.client))
        spellings = self._topics.spellings
        longest = max((len(spelling) for spelling in spellings), default=0)
        for start in range(0, len(frame), SEARCH_BYTES):
            await yielder.step()
            stop = start + SEARCH_BYTES + longest
            if any(frame.find(spelling, start, stop) >= 0 for spelling in spellings):
                return True
        return False

    async def _change(
        self, api: TopicsApi, intercepted: Intercepted, broker: Broker, handle: Handle
    ) -> Reply:
        """Answer a request that lists topics. Protected ones come last in the response."""
        yielder = Yielder(client_key(intercepted.exchange.client))
        request = await read_topics_request(api, intercepted.header, intercepted.frame, yielder)
        rejected: list[Topic] = []
        rest: list[Topic] = []
        for topic in request.topics:
            await yielder.step()
            if self._topics.has(topic.fields.name, topic.fields.topic_id):
                rejected.append(await _reject(request, topic, yielder))
            else:
                rest.append(topic)
        if not rejected:
            return await handle(intercepted, broker)
        if not rest:
            return Reply(write_topics_response(request, TopicsResponse(rejected)))
        reply = await handle(_with(intercepted, request.frame(rest)), broker)
        response = await read_topics_response(request, reply.frame[LENGTH_SIZE:], yielder)
        response = replace(response, topics=response.topics + rejected)
        return replace(reply, frame=write_topics_response(request, response))

    async def _alter(self, intercepted: Intercepted, broker: Broker, handle: Handle) -> Reply:
        """Answer a request that alters configs. Protected topics come last in the response."""
        yielder = Yielder(client_key(intercepted.exchange.client))
        request = await read_alter_request(intercepted.header, intercepted.frame, yielder)
        code = ErrorCode.topic_authorization_failed.value
        rejected: list[AlterResult] = []
        parts: list[bytes] = []
        for resource in request.resources:
            await yielder.step()
            if self._is_protected(resource.key):
                rejected.append(write_result(request, resource.key, code, MESSAGE))
            else:
                parts.append(resource.part(resource.ops, request.flexible))
        if not rejected:
            return await handle(intercepted, broker)
        if not parts:
            return Reply(await write_alter_response(request, rejected, 0, yielder))
        reply = await handle(_with(intercepted, request.frame(parts)), broker)
        response = await read_alter_response(request, reply.frame[LENGTH_SIZE:], yielder)
        results = response.results + rejected
        frame = await write_alter_response(request, results, response.throttle_time_ms, yielder)
        return replace(reply, frame=frame)

    def _is_protected(self, resource: tuple[int, str]) -> bool:
        kind, name = resource
        return kind == TOPIC_TYPE and name in self._topics.names


async def _reject(request: TopicsRequest, topic: Topic, yielder: Yielder) -> Topic:
    code = ErrorCode.topic_authorization_failed.value
    if request.api is DELETE_RECORDS:
        return await DELETE_RECORDS.reject(request, topic, code, yielder)
    return request.reject(topic, code, MESSAGE)


def _with(intercepted: Intercepted, frame: bytes) -> Intercepted:
    """The request with another frame, given with its length."""
    return Intercepted(intercepted.exchange, intercepted.header, frame[LENGTH_SIZE:])
