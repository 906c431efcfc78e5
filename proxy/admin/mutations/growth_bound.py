"""GrowthBound: rejects CreatePartitions of more partitions than a controller creates for one request.

A controller makes at most 10,000 changes for a request, and rejects more. CreateTopics are counted first. For
CreatePartitions, a controller of Kafka 3.9 to 4.3 assigns brokers to all new partitions of a topic before it
counts them: with one request of 60 bytes for 10,000,000 partitions of a client's own topic, it does nothing
else for minutes, and fills the heap. It also creates the first 10,000 of them, in spite of its error, if
another topic of the request gets partitions. So such topics are rejected here, with the error and the message
that CreateTopics has for this. The others in the request are those that a controller would extend.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.broker import Broker, Reply
from proxy.admin.messages.create_partitions import CREATE_PARTITIONS
from proxy.admin.messages.topics import (
    Topic,
    TopicsRequest,
    TopicsResponse,
    in_order,
    read_topics_request,
    read_topics_response,
    write_topics_response,
)
from proxy.admin.mutations.permits import MOST_PARTITIONS, NO_PERMITS, PermitCosts
from proxy.admin.yielder import Yielder
from proxy.quota.identity import client_key
from proxy.relay.intercepted import Intercepted
from proxy.wire.edit import LENGTH_SIZE

TOO_MANY: Final = "Excessively large number of partitions per request."
"""Kafka's own message, for CreateTopics."""
Handle = Callable[[Intercepted, Broker], Awaitable[Reply]]


class GrowthBound:
    """Answers for topics that get too many partitions, and gives the rest of a request to a handler."""

    def __init__(self, costs: Callable[[str], PermitCosts]) -> None:
        """`costs` returns the costs of a cluster's topics."""
        self._costs: Final = costs

    async def answer(self, intercepted: Intercepted, broker: Broker, handle: Handle) -> Reply:
        """Answer a CreatePartitions request.

        Raises ProtocolError if the request does not parse, and what `handle` raises.
        """
        yielder = Yielder(client_key(intercepted.exchange.client))
        header = intercepted.header
        request = await read_topics_request(CREATE_PARTITIONS, header, intercepted.frame, yielder)
        total = 0
        for topic in request.topics:
            total += max(topic.fields.partitions, 0)
            await yielder.step()
        if total <= MOST_PARTITIONS:  # nearly always: nobody needs to be asked
            return await handle(intercepted, broker)
        rest, rejected = await self._divide(request, broker, yielder)
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
        self, request: TopicsRequest, broker: Broker, yielder: Yielder
    ) -> tuple[list[Topic], list[Topic]]:
        """Return the topics to forward, and the others as the response has them. If nobody knows a topic, or
        the broker cannot be asked, all of its partitions but one count as new.
        """
        costs = await self._costs(broker.cluster_id).of(request, broker.counts, broker.node_id, yielder)
        left = MOST_PARTITIONS
        rest: list[Topic] = []
        rejected: list[Topic] = []
        for topic in request.topics:
            await yielder.step()
            added = costs.get(topic.key, NO_PERMITS).after
            if added <= left:
                left -= added
                rest.append(topic)
            else:
                rejected.append(request.reject(topic, int(ErrorCode.policy_violation), TOO_MANY))
        return rest, rejected
