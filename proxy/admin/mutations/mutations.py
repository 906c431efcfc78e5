"""The controller mutation quota (KIP-599) at work on CreateTopics, DeleteTopics and CreatePartitions.

Each topic is charged in its turn, before the broker hears of it. In versions that can say so (strict), one is
rejected while the tokens are below zero, and the rest goes to the broker in one request; in older ones
(permissive) all go. What the broker rejects gets its tokens back; where that makes room for topics that were
rejected, those go in another request. The client gets one answer. It has to wait where a topic was rejected,
or, in older versions, while the tokens are below zero.
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from proxy.admin.authority import Rights
from proxy.admin.messages.topic_apis import APIS
from proxy.admin.messages.topics import (
    Request,
    Topic,
    TopicKey,
    Yielder,
    read_answer,
    read_request,
    write_answer,
)
from proxy.admin.mutations.permit_charge import NONE, PermitCharge
from proxy.admin.mutations.permits import NOTHING, PermitCosts, Permits
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.upstream.partition_counts import PartitionCounts
from proxy.wire.apis import RequestHeader
from proxy.wire.edit import MAX_THROTTLE_MS
from proxy.wire.error_codes import THROTTLING_QUOTA_EXCEEDED
from proxy.wire.errors import Malformed, ProtocolError, UnsupportedVersion

Ask = Callable[[bytes], Awaitable[bytes]]
"""Sends the broker a whole frame on the client's own connection; header and body of its answer."""


MAX_REQUEST_BYTES: Final = 2 << 20
"""A request is taken apart by topic, which takes much more memory than its bytes. All topics that a
controller creates at once fit (10,000 partitions, KRaft)."""


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker to which a client has sent its request."""

    cluster_id: str
    node_id: int
    counts: PartitionCounts
    ask: Ask
    rights: Rights
    """What the client may do."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, and what else Relay.answer() takes."""

    frame: bytes
    throttle_seconds: float = 0.0
    hold: bool = False


class ControllerMutations:
    """Answers the requests to any cluster."""

    def __init__(self, quota: ControllerMutation, time: Callable[[], float]) -> None:
        self._quota: Final = quota
        self._time: Final = time
        self._clusters: Final[dict[str, PermitCosts]] = {}

    @property
    def active(self) -> bool:
        """Whether anybody has such a quota."""
        return self._quota.active

    def costs(self, cluster_id: str) -> PermitCosts:
        """What topics of a cluster cost, whichever listener a request comes to."""
        return self._clusters.setdefault(cluster_id, PermitCosts(self._time))

    async def answer(self, intercepted: Intercepted, broker: Broker) -> Reply:
        """The answer to a request.

        Raises ProtocolError where the request is none, RelayError where the broker's answer is none.
        """
        yielder = Yielder()
        header = intercepted.header
        check(header, len(intercepted.frame))
        request = await read_request(APIS[header.api_key], header, intercepted.frame, yielder)
        prices = self.costs(broker.cluster_id)
        who = intercepted.exchange.client
        bucket = self._quota.bucket(who, self._time())
        if bucket is None:
            case = _Case(request, {}, None, self._time)
        else:
            costs = await prices.of(request, broker.counts, broker.node_id, yielder)
            case = _Case(request, costs, PermitCharge(self._quota, bucket, request, costs, who), self._time)
        await case.put(broker.ask, yielder)
        for asked, done in case.done:
            prices.note(request, asked.fields, done.fields, case.costs.get(asked.key, NOTHING))
            await yielder.step()
        seconds = 0.0
        if bucket is not None and case.has_to_wait:
            seconds = self._quota.throttle(bucket, self._time(), who, header.api_key)
        throttle_time_ms = max(min(math.ceil(seconds * 1000.0), MAX_THROTTLE_MS), case.throttle_time_ms)
        frame = write_answer(request, case.topics(), throttle_time_ms)
        return Reply(frame, seconds, hold=not request.tells_throttle)


def check(header: RequestHeader, size: int) -> None:
    """UnsupportedVersion or Malformed for a request that cannot be answered."""
    versions = APIS[header.api_key].versions
    if header.api_version > versions.newest:
        raise UnsupportedVersion(
            f"{versions.name} v{header.api_version} is not supported; "
            f"ApiVersions offers up to v{versions.newest}"
        )
    if size > MAX_REQUEST_BYTES:
        raise Malformed(
            f"a {versions.name} request has {size} bytes; while there is a controller mutation quota, "
            f"{MAX_REQUEST_BYTES} are taken at most"
        )


class _Case:
    """One request before the quota and the broker."""

    def __init__(
        self,
        request: Request,
        costs: Mapping[TopicKey, Permits],
        bill: PermitCharge | None,
        time: Callable[[], float],
    ) -> None:
        """Without a bill everything is admitted."""
        self.costs: Final = costs
        self.done: Final[list[tuple[Topic, Topic]]] = []
        """What the broker did: topics as they were asked for, and as it answered."""
        self.throttle_time_ms = 0
        """The longest that the broker told."""
        self._request: Final = request
        self._bill: Final = bill
        self._time: Final = time
        self._asked: Final = {topic.key: topic for topic in request.topics}
        self._answered: Final[list[Topic]] = []
        self._rejected: list[Topic] = []
        self._questions = 0

    async def put(self, ask: Ask, yielder: Yielder) -> None:
        """Ask the broker for what the quota admits, and again while it makes room for more."""
        pending = self._request.topics
        while True:
            admitted = await self._admit(pending, yielder)
            if self._rejected and not admitted:
                return
            room = await self._ask(ask, admitted, yielder)
            if not self._rejected or not room:
                return
            pending = self._rejected

    async def _admit(self, topics: list[Topic], yielder: Yielder) -> list[Topic]:
        bill = self._bill
        admitted: list[Topic] = []
        self._rejected = []
        for topic in topics:
            passes = bill is None or bill.admit(topic, self._time())
            (admitted if passes else self._rejected).append(topic)
            await yielder.step()
        return admitted

    async def _ask(self, ask: Ask, topics: list[Topic], yielder: Yielder) -> bool:
        """Take the broker's answer; whether tokens were given back."""
        payload = await ask(self._request.frame(topics))
        self._questions += 1
        try:
            answer = await read_answer(self._request, payload, yielder)
        except ProtocolError as error:
            what = f"the answer to {self._request.api.versions.name} v{self._request.version}: {error}"
            raise RelayError(BROKER_PROTOCOL_ERROR, what) from error
        self.throttle_time_ms = max(self.throttle_time_ms, answer.throttle_time_ms)
        self._answered.extend(answer.topics)
        room = False
        for topic in answer.topics:
            asked = self._asked.get(_key(topic, self._asked))
            if asked is None:
                continue
            if self._bill is not None and self._bill.settle(asked.key, topic.fields, self._time()):
                room = True
            if topic.fields.error_code == NONE:
                self.done.append((asked, topic))
            await yielder.step()
        return room

    @property
    def has_to_wait(self) -> bool:
        """Whether the client waits until the tokens are back at zero."""
        if self._request.strict:
            return len(self._rejected) > 0
        return self._bill is not None and self._bill.total > 0

    def topics(self) -> list[Topic]:
        """What the client is answered, topic by topic: in its own order, unless the broker answered it all
        at once.
        """
        rejected = [self._request.reject(topic, THROTTLING_QUOTA_EXCEEDED) for topic in self._rejected]
        topics = self._answered + rejected
        if not rejected and self._questions <= 1:
            return topics
        places: dict[TopicKey, int] = {}
        for place, topic in enumerate(self._request.topics):
            places.setdefault(topic.key, place)
        return sorted(topics, key=lambda topic: places.get(_key(topic, places), len(places)))


def _key(topic: Topic, asked: Mapping[TopicKey, object]) -> TopicKey:
    """What the client called a topic of an answer, which may give both its name and its id."""
    topic_id = topic.fields.topic_id
    return topic_id if topic_id in asked else topic.key
