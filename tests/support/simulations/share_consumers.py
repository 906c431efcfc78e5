"""Share consumers under a quota, simulated: relays, their clients, a broker, and one clock.

The broker gives each ShareFetch one batch, whatever its max_bytes, as brokers give at least one. The records
of a response that is withheld stay locked, and come again.
"""

import uuid
from functools import lru_cache
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.relay.counters.traffic import Traffic
from proxy.wire.api_keys import SHARE_FETCH
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    Ports,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.stories.playbook import START, RelayDriver, drive

VERSION: Final = 2
TICK: Final = 0.02
"""Seconds from a request to its response, and from a response to the next request."""
MAX_WAIT_SECONDS: Final = 0.5
LOCK_SECONDS: Final = 30.0


def share_fetch(
    version: int,
    max_bytes: int = 50 << 20,
    min_bytes: int = 1,
    group_id: str | None = "g",
    *,
    max_records: int = 500,
    max_wait_seconds: float = MAX_WAIT_SECONDS,
    acknowledges: bool = False,
) -> bytes:
    """A request of a share session; `acknowledges`: it acknowledges a record of its second partition."""
    schema = request_type(SHARE_FETCH, version)
    message = schema(
        group_id=group_id,
        member_id="m",
        share_session_epoch=0,
        max_wait=milliseconds(int(max_wait_seconds * 1000)),
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        max_records=max_records,
        batch_size=500,
        topics=_acknowledging(schema) if acknowledges else (),
        forgotten_topics_data=(),
    )
    return request_frame(message)


def _acknowledging(schema: Any) -> tuple[Any, ...]:
    topic = schema.__annotations__["topics"].__args__[0]
    partition = topic.__annotations__["partitions"].__args__[0]
    batch = partition.__annotations__["acknowledgement_batches"].__args__[0]
    batches = (batch(first_offset=5, last_offset=6, acknowledge_types=(1,)),)
    partitions = (
        partition(partition_index=0, acknowledgement_batches=()),
        partition(partition_index=1, acknowledgement_batches=batches),
    )
    return (topic(topic_id=uuid.UUID(int=7), partitions=partitions),)


def share_fetched(version: int, throttle_ms: int = 0, fill: int = 0) -> bytes:
    """A response without records, which is `fill` bytes longer than an empty one."""
    return response_frame(_response(version, throttle_ms, (), "x" * fill or None))


@lru_cache(maxsize=64)
def delivery(
    version: int,
    records: bytes,
    throttle_ms: int = 0,
    *,
    withheld: bool = False,
    lock_seconds: float = LOCK_SECONDS,
) -> bytes:
    """A response with the result of an acknowledgement; with records, or without those that are withheld."""
    message = response_type(SHARE_FETCH, version)
    topic = message.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partitions"].__args__[0]
    leader = partition.__annotations__["current_leader"]
    acquired = partition.__annotations__["acquired_records"].__args__[0]
    made = partition(
        partition_index=3,
        error_code=ErrorCode.none,
        acknowledge_error_code=121,
        acknowledge_error_message="it was not locked",
        current_leader=leader(leader_id=1, leader_epoch=5),
        records=b"" if withheld else records,
        acquired_records=() if withheld else (acquired(first_offset=4, last_offset=9, delivery_count=1),),
    )
    other = partition(
        partition_index=4,
        error_code=ErrorCode.none,
        acknowledge_error_code=0,
        current_leader=leader(leader_id=1, leader_epoch=5),
        records=b"",
        acquired_records=(),
    )
    topics = (topic(topic_id=None, partitions=(made, other)),)
    return response_frame(_response(version, throttle_ms, topics, None, lock_seconds))


def _response(
    version: int,
    throttle_ms: int,
    topics: Any,
    error_message: str | None,
    lock_seconds: float = LOCK_SECONDS,
) -> Any:
    return response_type(SHARE_FETCH, version)(
        throttle_time=milliseconds(throttle_ms),
        error_code=ErrorCode.none,
        error_message=error_message,
        acquisition_lock_timeout=milliseconds(int(lock_seconds * 1000)),
        responses=topics,
        node_endpoints=(),
    )


ACKNOWLEDGES: Final = share_fetch(VERSION, max_records=0, max_wait_seconds=0.0)
"""What the relay forwards of the request of a ShareConsumer that has waited for long."""


class ShareConsumer:
    """A member of a share group that fetches whenever it can, whatever throttle_time_ms it is told."""

    def __init__(self, world: "ShareWorld") -> None:
        self._world: Final = world
        self._relay: RelayDriver = world.connect()
        self._asked = False
        self._acquires = True
        """Whether its request asks for records."""
        self._since = -1.0
        """When the broker has received its request; negative while it has none."""

    def step(self, now: float) -> None:
        """Do what is due at this time."""
        relay = self._relay
        while 0.0 < relay.next_timer <= now:
            relay.handle_timer(relay.next_timer)
        if not self._asked and not relay.client_muted:
            self._asked = True
            relay.receive_from_client(share_fetch(VERSION), now)
        if sent := b"".join(relay.take_to_broker()):
            self._since = now
            self._acquires = sent != ACKNOWLEDGES
        elif self._since >= 0.0:
            self._serve(now)

    def _serve(self, now: float) -> None:
        """Let the broker respond if it has records, or if the time of the request is over."""
        world = self._world
        batch = world.acquire(now) if self._acquires else 0
        if batch == 0 and self._acquires and now < self._since + MAX_WAIT_SECONDS:
            return
        self._since = -1.0
        self._asked = False
        found = delivery(VERSION, b"r" * batch) if batch else share_fetched(VERSION)
        self._relay.receive_from_broker(found, now)
        size = len(b"".join(self._relay.take_to_client()))
        if batch and size < batch:
            world.lock(batch, now)
        elif batch:
            world.deliver(batch, now)
        if world.reconnects:
            self._relay.end()
            self._relay = world.connect()


class ShareWorld:
    """The clock, the broker's records, and the consumers of one quota."""

    def __init__(
        self,
        engine: QuotaEngine,
        consumers: int,
        *,
        batch: int,
        available: int = 1 << 40,
        reconnects: bool = False,
    ) -> None:
        self._engine: Final = engine
        self._traffic: Final = Traffic()
        self._batch: Final = batch
        self.available = available
        """Bytes that no consumer has acquired."""
        self.reconnects: Final = reconnects
        """Whether each fetch has a connection of its own."""
        self._now = START
        self._locked: Final[list[tuple[float, int]]] = []
        """When records become available again, and their bytes."""
        self.received: Final[list[tuple[float, int]]] = []
        """The time and the size of each batch that a consumer has got; times since the beginning."""
        self.withheld = 0
        self._consumers: Final = [ShareConsumer(self) for _ in range(consumers)]

    def connect(self) -> RelayDriver:
        return drive(self._engine, Ports(), self._traffic)

    def acquire(self, now: float) -> int:
        """Take one batch; return its size, or 0 if there is none."""
        while self._locked and self._locked[0][0] <= now:
            self.available += self._locked.pop(0)[1]
        if self.available < self._batch:
            return 0
        self.available -= self._batch
        return self._batch

    def lock(self, size: int, now: float) -> None:
        self.withheld += 1
        self._locked.append((now + LOCK_SECONDS, size))

    def deliver(self, size: int, now: float) -> None:
        self.received.append((now - START, size))

    def run(self, seconds: float) -> None:
        """Run for so many seconds."""
        for _ in range(round(seconds / TICK)):
            self._now += TICK
            for consumer in self._consumers:
                consumer.step(self._now)

    @property
    def got(self) -> int:
        """Bytes of records that all consumers have got."""
        return sum(size for _, size in self.received)

    def ahead(self, limit: float) -> float:
        """The most bytes that the consumers have ever had beyond this rate."""
        got = 0
        most = 0.0
        for seconds, size in self.received:
            got += size
            most = max(most, got - limit * seconds)
        return most
