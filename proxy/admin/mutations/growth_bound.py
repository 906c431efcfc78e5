"""GrowthBound: rejects CreatePartitions of more partitions than a controller creates for one request.

A controller makes at most 10,000 changes for a request, and rejects more. CreateTopics are counted first. For
CreatePartitions, a controller of Kafka 3.9 to 4.3 assigns brokers to all new partitions of a topic before it
counts them: with one request of 60 bytes for 10,000,000 partitions of a client's own topic, it does nothing
else for minutes, and fills the heap. It also creates the first 10,000 of them, in spite of its error, if
another topic of the request gets partitions. So such topics are rejected here, with the error and the message
that CreateTopics has for this. The others in the request are those that a controller would extend.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName

from proxy.admin.broker import Broker, Reply
from proxy.admin.messages.create_partitions import CREATE_PARTITIONS
from proxy.admin.messages.topics import (
    NO_COUNT,
    Topic,
    TopicsRequest,
    TopicsResponse,
    in_order,
    read_topics_request,
    read_topics_response,
    write_topics_response,
)
from proxy.admin.mutations.permits import MOST_PARTITIONS
from proxy.admin.yielder import Yielder
from proxy.quota.identity import client_key
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.upstream.broker_connection import request_frame
from proxy.upstream.responses import read_response
from proxy.wire.edit import LENGTH_SIZE

TOO_MANY: Final = "Excessively large number of partitions per request."
"""Kafka's own message, for CreateTopics."""
TOPICS_AT_A_TIME: Final = 100
PARTITIONS_AT_A_TIME: Final = 2 * MOST_PARTITIONS
"""In one Metadata response. kio decodes as many in 20 ms; nobody else is served meanwhile."""
Handle = Callable[[Intercepted, Broker], Awaitable[Reply]]


async def answer_growth(intercepted: Intercepted, broker: Broker, handle: Handle) -> Reply:
    """Answer a CreatePartitions request: topics that get too many partitions with an error, the rest with
    what `handle` returns.

    Raises ProtocolError if the request does not parse, RelayError if the broker's response does not, and what
    `handle` raises.
    """
    yielder = Yielder(client_key(intercepted.exchange.client))
    header = intercepted.header
    request = await read_topics_request(CREATE_PARTITIONS, header, intercepted.frame, yielder)
    total = 0
    for topic in request.topics:
        total += max(topic.fields.partitions, 0)
        await yielder.step()
    if total <= MOST_PARTITIONS:  # nearly always: the broker need not be asked
        return await handle(intercepted, broker)
    rest, rejected = await _divide(request, intercepted.exchange.client.client_id, broker, yielder)
    if not rejected:
        return await handle(intercepted, broker)
    if not rest:
        return Reply(write_topics_response(request, TopicsResponse(rejected)))
    frame = request.frame(rest)[LENGTH_SIZE:]
    reply = await handle(Intercepted(intercepted.exchange, header, frame), broker)
    response = await read_topics_response(request, reply.frame[LENGTH_SIZE:], yielder)
    topics = await in_order(request.topics, response.topics + rejected, yielder)
    return replace(reply, frame=write_topics_response(request, replace(response, topics=topics)))


async def _divide(
    request: TopicsRequest, client_id: str, broker: Broker, yielder: Yielder
) -> tuple[list[Topic], list[Topic]]:
    """Return the topics to forward, and the others as the response has them.

    After the first of these, the broker is not asked any more: all partitions of further topics count as new.
    """
    times: Counter[str | None] = Counter()
    async for some in yielder.slices(request.topics):
        times.update([topic.fields.name for topic in some])
    left = MOST_PARTITIONS
    counts: dict[str, int] = {}
    asked = 0
    rest: list[Topic] = []
    rejected: list[Topic] = []
    for place, topic in enumerate(request.topics):
        await yielder.step()
        fields = topic.fields
        added = 0
        if fields.partitions > 1 and times[fields.name] == 1:
            if place >= asked and not rejected:
                names = _next_names(request.topics, place)
                asked = place + len(names)
                counts.update(await _counts(names, request, client_id, broker))
            added = fields.partitions - counts.get(fields.name or "", 1)
            # A controller rejects an assignment of more or fewer partitions at once.
            if not rejected and fields.assigned not in (NO_COUNT, added):
                added = 0
        if added <= left:
            left -= max(added, 0)
            rest.append(topic)
        else:
            rejected.append(request.reject(topic, int(ErrorCode.policy_violation), TOO_MANY))
    return rest, rejected


def _next_names(topics: list[Topic], place: int) -> list[str]:
    """Return the names of the next topics: of so many that the response is not too large."""
    names: list[str] = []
    partitions = 0
    for topic in topics[place : place + TOPICS_AT_A_TIME]:
        partitions += max(topic.fields.partitions, 0)
        if names and partitions > PARTITIONS_AT_A_TIME:
            break
        names.append(topic.fields.name or "")
    return names


async def _counts(names: list[str], request: TopicsRequest, client_id: str, broker: Broker) -> dict[str, int]:
    """Return the partitions of those topics that the client may describe. It is asked on the client's own
    connection: otherwise the result would tell of others. Raises RelayError.
    """
    message = MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=TopicName(name), topic_id=None) for name in names),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    payload = await broker.ask(request_frame(message, request.correlation_id, client_id))
    try:
        _, response = read_response(MetadataResponse, payload)
    except ValueError as error:
        raise RelayError(
            BROKER_PROTOCOL_ERROR, f"the response to Metadata does not parse: {error}"
        ) from error
    return {str(topic.name): len(topic.partitions) for topic in response.topics if topic.error_code == 0}
