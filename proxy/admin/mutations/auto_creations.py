"""AutoCreations: applies the controller mutation quota to topics that Metadata requests create.

A broker with auto.create.topics.enable creates the topics of a Metadata request that do not exist. It sends
CreateTopics in the client's name to the controller, whose quota is strict, and tells the client that the
topics are unknown (AutoTopicCreationManager); the client asks again until they are there. A topic that the
quota rejects is unknown to the client, too.

The relay intercepts only the Metadata requests of clients with a controller mutation quota:

1. The proxy asks the broker which of the topics exist, without creating any.
2. Of the topics that do not exist, it admits as many as the quota allows, at num.partitions tokens each. With
   a request of its own on the client's connection, it has the broker create them.
3. It forwards the client's request without the permission to create topics. If the broker has not created the
   admitted topics, it forwards the request unchanged, so that the client gets the broker's error.

Requests before v4 always create topics. They wait until the quota admits all of their topics, and are
forwarded unchanged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.broker import Broker, Reply
from proxy.admin.messages.fields import MAX_REQUEST_BYTES, frame
from proxy.admin.messages.metadata import (
    ALLOWS_FROM,
    MetadataRequest,
    read_metadata_request,
    read_topic_errors,
)
from proxy.admin.mutations.permits import PermitCosts
from proxy.admin.mutations.turns import LONGEST_SLEEP, check_client
from proxy.admin.yielder import Yielder
from proxy.quota.identity import Identity, client_key
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.measure.bucket import Bucket
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.upstream.partitions import Partitions
from proxy.wire.api_keys import METADATA
from proxy.wire.errors import Malformed, ProtocolError

UNKNOWN: Final = int(ErrorCode.unknown_topic_or_partition)
CREATED: Final = frozenset([UNKNOWN, int(ErrorCode.leader_not_available), int(ErrorCode.none)])
"""The error codes of a topic that the broker has created, or is going to."""
PENDING_SECONDS: Final = 5.0
"""How long after its charge a topic may be unknown to the broker, although it is being created."""


class AutoCreations:
    """Answers the Metadata requests of clients with a quota, to one cluster or several."""

    def __init__(
        self,
        quota: ControllerMutation,
        costs: Callable[[str], PermitCosts],
        time: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`costs` returns those of a cluster, by its id."""
        self._quota: Final = quota
        self._costs: Final = costs
        self._time: Final = time
        self._sleep: Final = sleep

    async def answer(self, intercepted: Intercepted, broker: Broker) -> Reply:
        """Return the request to forward. Raises ProtocolError if it does not parse, RelayError if the
        broker's response does not.
        """
        payload = intercepted.frame
        who = intercepted.exchange.client
        unchanged = Reply(frame([payload]), forwards=True)
        if self._bucket(who) is None:
            return unchanged
        defaults = await broker.counts.default(broker.node_id, self._time())
        if not defaults.creates:
            return unchanged
        if len(payload) > MAX_REQUEST_BYTES:
            raise Malformed(
                f"Metadata request of {len(payload)} bytes: "
                f"with a controller mutation quota the limit is {MAX_REQUEST_BYTES} bytes"
            )
        old = intercepted.header.api_version < ALLOWS_FROM
        yielder = Yielder(client_key(who))
        request = await read_metadata_request(intercepted.header, payload, yielder)
        if not request.names:
            return unchanged
        errors = await _ask(request, request.frame(create=False), broker, yielder)
        missing: list[str] = []
        async for names in yielder.slices(request.names):
            missing += [name for name in names if errors.get(name) == UNKNOWN]
        harmless = unchanged if old else Reply(request.frame(create=False), forwards=True)
        if not missing:
            return harmless
        charge = _Charge(self._quota, self._costs(broker.cluster_id), who, self._time)
        admitted = await charge.admit(missing, defaults.partitions, self._bucket, yielder)
        while old and len(admitted) < len(missing):
            check_client(broker.gone)
            await self._wait(who)
            admitted = await charge.admit(missing, defaults.partitions, self._bucket, yielder)
        if admitted:
            errors = await _ask(request, request.creating(admitted), broker, yielder)
            if not await charge.settle(errors, yielder) and len(admitted) == len(missing):
                return unchanged
        return harmless

    def _bucket(self, who: Identity) -> Bucket | None:
        return self._quota.bucket(who, self._time())

    async def _wait(self, who: Identity) -> None:
        """Wait until the quota may admit a topic, or its limit may have changed."""
        bucket = self._bucket(who)
        if bucket is not None:
            await self._sleep(min(max(bucket.wait(self._time()), 0.001), LONGEST_SLEEP))


class _Charge:
    """The charge of one request for the topics that it creates, which is made before they are created."""

    def __init__(
        self, quota: ControllerMutation, costs: PermitCosts, who: Identity, time: Callable[[], float]
    ) -> None:
        self._quota: Final = quota
        self._costs: Final = costs
        self._who: Final = who
        self._time: Final = time
        self._charged: Final[dict[str, tuple[Bucket, int]]] = {}

    async def admit(
        self,
        names: Sequence[str],
        partitions: int,
        bucket_of: Callable[[Identity], Bucket | None],
        yielder: Yielder,
    ) -> list[str]:
        """Charge topics while the quota admits them, each with `partitions` tokens; return those that may be
        created. A topic that this request or a recent one was charged for is not charged again.
        """
        admitted: list[str] = []
        recent = self._costs.recent
        for name in names:
            now = self._time()
            bucket = bucket_of(self._who)
            known = name in self._charged or recent.recall(name, now, PENDING_SECONDS) is not None
            if not known and bucket is not None:
                if not self._quota.charge_strict(bucket, partitions, now, self._who, METADATA):
                    continue
                self._charged[name] = (bucket, partitions)
                recent.note(name, Partitions(partitions), now)
            admitted.append(name)
            await yielder.step()
        return admitted

    async def settle(self, errors: dict[str, int], yielder: Yielder) -> bool:
        """Give back the tokens of topics that the broker does not create, by their error codes; return
        whether it creates all of them.
        """
        created = True
        for name, (bucket, partitions) in self._charged.items():
            await yielder.step()
            if errors.get(name, UNKNOWN) not in CREATED:
                created = False
                self._costs.recent.forget(name)
                self._quota.give_back(bucket, partitions, self._time())
        return created


async def _ask(request: MetadataRequest, question: bytes, broker: Broker, yielder: Yielder) -> dict[str, int]:
    payload = await broker.ask(question)
    try:
        return await read_topic_errors(payload, request.version, yielder)
    except ProtocolError as error:
        what = f"the response to Metadata v{request.version} does not parse: {error}"
        raise RelayError(BROKER_PROTOCOL_ERROR, what) from error
