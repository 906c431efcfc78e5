"""ControllerMutations: applies the controller mutation quota to CreateTopics, DeleteTopics and
CreatePartitions.

Each topic is charged before the request is forwarded. Versions with THROTTLING_QUOTA_EXCEEDED are strict:
topics are rejected while the tokens are below zero, and the other topics are forwarded in one request. In
older versions (permissive) the request waits until the tokens are not below zero, and then all topics are
forwarded; the requests of one quota wait for each other. Topics that the broker rejects get their tokens
back. If that admits topics that were rejected, they are forwarded in a further request. The client gets one
response. It is throttled if a topic was rejected, or, in older versions, while the tokens are below zero.

A controller checks the name of a new topic, its partitions and everything else before the quota. So if the
tokens do not suffice for a CreateTopics or CreatePartitions request, the broker first validates the whole
request, and creates nothing. Topics that it rejects get its error in place of THROTTLING_QUOTA_EXCEEDED, and
cost nothing. For CreatePartitions, the controller checks the brokers of an assignment only after the quota.
A CreateTopics request of up to 10,000 partitions, and of more than 10,000 changes with its topics and their
configs, is charged, too: the controller finds that it is too large when it has charged it.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import Ask
from proxy.admin.broker import Broker, Reply
from proxy.admin.messages.create_partitions import CREATE_PARTITIONS
from proxy.admin.messages.create_topics import CREATE_TOPICS
from proxy.admin.messages.delete_topics import DELETE_TOPICS
from proxy.admin.messages.fields import MAX_REQUEST_BYTES
from proxy.admin.messages.topics import (
    Topic,
    TopicsApi,
    TopicsRequest,
    TopicsResponse,
    in_order,
    read_topics_request,
    read_topics_response,
    requested_key,
    write_topics_response,
)
from proxy.admin.mutations.auto_creations import AutoCreations
from proxy.admin.mutations.permit_charge import NONE, PermitCharge
from proxy.admin.mutations.permits import MOST_PARTITIONS, NO_PERMITS, PermitCosts, Permits
from proxy.admin.mutations.streams_topics import StreamsTopics
from proxy.admin.mutations.turns import MutationTurns
from proxy.admin.yielder import Yielder
from proxy.quota.identity import Identity, client_key
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.measure.bucket import Bucket
from proxy.quota.verdict import ALLOW, Verdict
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.upstream.partitions import TopicKey
from proxy.wire.edit import MAX_THROTTLE_MS
from proxy.wire.error_codes import THROTTLING_QUOTA_EXCEEDED
from proxy.wire.errors import Malformed, ProtocolError

POLICY_VIOLATION: Final = int(ErrorCode.policy_violation)
TOPIC_APIS: Final[dict[int, TopicsApi]] = {
    api.versions.key: api for api in (CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS)
}
"""The APIs of this quota, by API key."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The response to a request, and the wait of the client."""

    response: TopicsResponse
    throttle: Verdict = ALLOW
    announced_seconds: float = 0.0
    """How much of the wait the client is told."""


class ControllerMutations:
    """Answers the requests to all clusters."""

    def __init__(
        self,
        quota: ControllerMutation,
        time: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._quota: Final = quota
        self._turns: Final = MutationTurns(quota, time, sleep)
        self._time: Final = time
        self._clusters: Final[dict[str, PermitCosts]] = {}
        self.auto_creations: Final = AutoCreations(quota, self.costs, time)
        self.streams_topics: Final = StreamsTopics(quota, self.costs, self._turns, time)

    @property
    def active(self) -> bool:
        """Whether any client has a controller mutation quota."""
        return self._quota.active

    def costs(self, cluster_id: str) -> PermitCosts:
        """Return the costs of a cluster's topics, which its listeners share."""
        return self._clusters.setdefault(cluster_id, PermitCosts(self._time))

    async def answer(self, intercepted: Intercepted, broker: Broker) -> Reply:
        """Answer a request.

        Raises ProtocolError if the request does not parse, RelayError if the broker's response does not.
        """
        yielder = Yielder(client_key(intercepted.exchange.client))
        request = await read_intercepted(intercepted, yielder)
        outcome = await self.forward(request, intercepted.exchange.client, broker, yielder)
        return reply_to(request, outcome)

    async def forward(
        self, request: TopicsRequest, who: Identity, broker: Broker, yielder: Yielder
    ) -> Outcome:
        """Forward the topics that the quota admits. Raises RelayError as answer() does."""
        prices = self.costs(broker.cluster_id)
        bucket = self._quota.bucket(who, self._time())
        if bucket is None:
            run = _ChargedRequest(request, {}, None, self._time)
            await run.forward(broker.ask, yielder)
        else:
            await broker.earlier_done()
            if request.strict:
                run = await self._forward_charged(request, bucket, who, broker, yielder)
            else:
                async with self._turns.turn(bucket, who, broker.gone):
                    run = await self._forward_charged(request, bucket, who, broker, yielder)
        for requested, done in run.done:
            prices.note(request, requested.fields, done.fields, run.costs.get(requested.key, NO_PERMITS))
            await yielder.step()
        throttle = ALLOW
        if bucket is not None and run.throttled:
            throttle = self._quota.throttle(bucket, self._time(), who, request.api.versions.key)
        announced = self._quota.announced(throttle)
        throttle_time_ms = max(min(math.ceil(announced * 1000.0), MAX_THROTTLE_MS), run.throttle_time_ms)
        return Outcome(TopicsResponse(await run.topics(yielder), throttle_time_ms), throttle, announced)

    async def _forward_charged(
        self, request: TopicsRequest, bucket: Bucket, who: Identity, broker: Broker, yielder: Yielder
    ) -> "_ChargedRequest":
        """Forward the topics that the quota admits. What a topic costs is known when nothing else is awaited:
        topics may get partitions meanwhile.
        """
        prices = self.costs(broker.cluster_id)
        costs = await prices.of(request, broker.counts, broker.node_id, yielder)
        run = _ChargedRequest(
            request, costs, PermitCharge(self._quota, bucket, request, costs, who), self._time
        )
        await run.forward(broker.ask, yielder)
        return run


async def read_intercepted(intercepted: Intercepted, yielder: Yielder) -> TopicsRequest:
    """Read an intercepted request of one of the APIs. Raises UnsupportedVersion or Malformed."""
    header = intercepted.header
    api = TOPIC_APIS[header.api_key]
    api.versions.check_version(header.api_version)
    size = len(intercepted.frame)
    if size > MAX_REQUEST_BYTES:
        raise Malformed(
            f"{api.versions.name} request of {size} bytes: "
            f"with a controller mutation quota the limit is {MAX_REQUEST_BYTES} bytes"
        )
    return await read_topics_request(api, header, intercepted.frame, yielder)


async def ask_topics(
    request: TopicsRequest, topics: list[Topic], ask: Ask, yielder: Yielder, *, validate: bool = False
) -> TopicsResponse:
    """Forward a request with these of its topics, or have them only validated.

    Raises RelayError if the response does not parse.
    """
    payload = await ask(request.validation(topics) if validate else request.frame(topics))
    try:
        return await read_topics_response(request, payload, yielder)
    except ProtocolError as error:
        what = f"the response to {request.api.versions.name} v{request.version} does not parse: {error}"
        raise RelayError(BROKER_PROTOCOL_ERROR, what) from error


def reply_to(request: TopicsRequest, outcome: Outcome) -> Reply:
    """Return the reply to a request. A response without throttle_time_ms is delayed instead."""
    frame = write_topics_response(request, outcome.response)
    delay_seconds = 0.0 if request.has_throttle_time else outcome.announced_seconds
    return Reply(frame, outcome.throttle, delay_seconds)


class _ChargedRequest:
    """A request on its way through the quota to the broker, and its response."""

    def __init__(
        self,
        request: TopicsRequest,
        costs: Mapping[TopicKey, Permits],
        charge: PermitCharge | None,
        time: Callable[[], float],
    ) -> None:
        """`costs` and `charge` are those of the client; without a charge, all topics are admitted."""
        self.costs: Final = costs
        self.done: Final[list[tuple[Topic, Topic]]] = []
        """The topics without an error: as requested, and as in the response."""
        self.throttle_time_ms = 0
        """The largest of the broker's responses."""
        self._request: Final = request
        self._charge: Final = charge
        self._time: Final = time
        self._requested: Final[dict[TopicKey, Topic]] = {}
        self._responded: Final[list[Topic]] = []
        self._rejected: list[Topic] = []
        self._forwards = 0
        self._too_large = False
        """Whether the controller charges all topics before it finds that it would make too many changes."""

    async def forward(self, ask: Ask, yielder: Yielder) -> None:
        """Forward the topics that the quota admits, and again while the response gives tokens back."""
        partitions = others = 0
        async for some in yielder.slices(self._request.topics):
            self._requested.update([(topic.key, topic) for topic in some])
            partitions += sum(self.costs.get(topic.key, NO_PERMITS).after for topic in some)
            others += sum(1 + topic.fields.configs for topic in some)
        creates = self._request.api is CREATE_TOPICS
        self._too_large = creates and partitions <= MOST_PARTITIONS < partitions + others
        admitted = await self._admit(self._request.topics, yielder)
        if self._rejected and self._request.api.validates:
            valid = await self._validate(ask, yielder)
            admitted = await self._admit(valid, yielder)
            if not valid:
                return
        while admitted or not self._rejected:
            gave_back = await self._forward(ask, admitted, yielder)
            if not self._rejected or not gave_back:
                return
            admitted = await self._admit(self._rejected, yielder)

    async def _validate(self, ask: Ask, yielder: Yielder) -> list[Topic]:
        """Have the broker validate the whole request, and take its errors. Return the valid topics, which are
        to be charged again.
        """
        if self._charge is not None:
            self._charge.cancel(self._time())
        response = await ask_topics(self._request, self._request.topics, ask, yielder, validate=True)
        self._forwards += 1
        self.throttle_time_ms = max(self.throttle_time_ms, response.throttle_time_ms)
        invalid: set[TopicKey] = set()
        for topic in response.topics:
            key = requested_key(topic, self._requested)
            code = topic.fields.error_code
            if code != NONE and not self._is_late(key, code):
                invalid.add(key)
                self._responded.append(topic)
            await yielder.step()
        valid: list[Topic] = []
        async for some in yielder.slices(self._request.topics):
            valid += [topic for topic in some if topic.key not in invalid]
        return valid

    def _is_late(self, key: TopicKey, code: int) -> bool:
        """Whether a controller finds an error of a topic only after it has checked the quota."""
        if self._too_large and code == POLICY_VIOLATION:
            return True
        return code in self._request.api.after_quota and self.costs.get(key, NO_PERMITS).before > 0

    async def _admit(self, topics: list[Topic], yielder: Yielder) -> list[Topic]:
        """Charge these topics; return those that the quota admits. The others become `_rejected`."""
        charge = self._charge
        admitted: list[Topic] = []
        self._rejected = []
        for topic in topics:
            admits = charge is None or charge.admit(topic, self._time())
            (admitted if admits else self._rejected).append(topic)
            await yielder.step()
        return admitted

    async def _forward(self, ask: Ask, topics: list[Topic], yielder: Yielder) -> bool:
        """Forward these topics and settle the charge; return whether tokens were given back."""
        response = await ask_topics(self._request, topics, ask, yielder)
        self._forwards += 1
        self.throttle_time_ms = max(self.throttle_time_ms, response.throttle_time_ms)
        self._responded.extend(response.topics)
        gave_back = False
        for topic in response.topics:
            requested = self._requested.get(requested_key(topic, self._requested))
            if requested is None:
                continue
            code = topic.fields.error_code
            stays_charged = self._too_large and code == POLICY_VIOLATION
            if self._charge is not None and not stays_charged:
                gave_back |= self._charge.settle(requested.key, topic.fields, self._time())
            if code == NONE:
                self.done.append((requested, topic))
            await yielder.step()
        return gave_back

    @property
    def throttled(self) -> bool:
        """Whether the client is throttled until the tokens are back at zero."""
        if self._request.strict:
            return len(self._rejected) > 0
        return self._charge is not None and self._charge.total > 0

    async def topics(self, yielder: Yielder) -> list[Topic]:
        """Return the response's topics: in the broker's order if one response has all, else in the
        request's.
        """
        topics = [*self._responded]
        for topic in self._rejected:
            await yielder.step()
            topics.append(self._request.reject(topic, THROTTLING_QUOTA_EXCEEDED))
        if not self._rejected and self._forwards <= 1:
            return topics
        return await in_order(self._request.topics, topics, yielder)
