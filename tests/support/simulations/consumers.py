"""Consumers under quotas, simulated: relays, their clients, a broker with logs, and one clock.

A broker works on one request of a connection at a time. It responds at once if it has records, and otherwise
when max_wait_ms is over or records come. Each consumer reads a log of its own.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.relay.counters.traffic import Traffic
from proxy.wire.api_keys import FETCH
from tests.support.messages.exchanges import TOPIC, milliseconds, record_batch
from tests.support.messages.kio_messages import (
    Ports,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.stories.playbook import START, RelayDriver, drive

LATENCY: Final = 0.001
"""Seconds from the proxy to the broker or the client, and back."""
MAX_WAIT_SECONDS: Final = 0.5
ENDLESS: Final = 1 << 40
NO_SESSION: Final = 0
FULL: Final = 0
FINAL: Final = -1
VERSION: Final = 12
SESSIONS_FROM: Final = 7


@dataclass
class Log:
    """Batches of one size, of which `available` bytes exist."""

    batch: int = 10_000
    available: int = ENDLESS
    partition: int = 0


@dataclass(eq=False)
class Consumer:
    """A client with one connection."""

    log: Log = field(default_factory=Log)
    version: int = VERSION
    max_bytes: int = 50 << 20
    min_bytes: int = 1
    max_wait: float = MAX_WAIT_SECONDS
    ahead: int = 1
    """The number of fetches that it sends before it receives a response."""
    hangs_up: bool = False
    """Whether it opens a new connection for each fetch."""
    pause: float = 0.0
    """Seconds between a response and the next fetch."""
    honest: bool = True
    """Whether it waits for throttle_time_ms."""
    sessions: bool = False
    denied: bool = False
    """Whether the broker rejects its fetches."""
    alternates: bool = False
    """Whether the leader epoch of each fetch differs from that of the one before."""
    starts_at: float = 0.0
    got: int = 0
    """Bytes of records that have been delivered."""
    responses: int = 0
    empty: int = 0
    received: list[tuple[float, int]] = field(default_factory=list)
    """The time and the bytes of records of each response."""
    longest_wait: float = 0.0
    session_id: int = NO_SESSION
    epoch: int = FINAL

    def request(self, correlation_id: int) -> bytes:
        frame = _request(
            self.version,
            int(self.max_wait * 1000),
            self.min_bytes,
            self.max_bytes,
            self.log.partition,
            correlation_id % 2 if self.alternates else -1,
            self.session_id,
            self.epoch if self.sessions else FINAL,
        )
        return frame[:8] + correlation_id.to_bytes(4, "big") + frame[12:]


# Most messages of a story differ in their correlation ids only: kio encodes and decodes one of them.


@lru_cache(maxsize=1024)
def _request(
    version: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    partition: int,
    leader_epoch: int,
    session_id: int,
    session_epoch: int,
) -> bytes:
    """A Fetch request with correlation id 0."""
    message_type = request_type(FETCH, version)
    topic = message_type.__annotations__["topics"].__args__[0]
    made = topic.__annotations__["partitions"].__args__[0]
    fields: dict[str, Any] = {"fetch_offset": 0, "partition_max_bytes": 50 << 20}
    if version >= 9:
        fields["current_leader_epoch"] = leader_epoch
    if version >= 12:
        fields["last_fetched_epoch"] = -1
    if version >= 5:
        fields["log_start_offset"] = -1
    more: dict[str, Any] = {} if version >= 15 else {"replica_id": -1}
    if version >= 11:
        more["rack_id"] = ""
    if version >= SESSIONS_FROM:
        more |= {"forgotten_topics_data": ()}
        more |= {"session_id": session_id, "session_epoch": session_epoch}
    message = message_type(
        max_wait=milliseconds(max_wait_ms),
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=(topic(topic=TOPIC, partitions=(made(partition=partition, **fields),)),),
        **more,
    )
    return request_frame(message, 0, "client")


@lru_cache(maxsize=1024)
def _read_request(version: int, frame: bytes) -> Any:
    return read_frame(request_type(FETCH, version), frame)


@lru_cache(maxsize=64)
def _response(
    version: int, partition: int, batch: int, batches: int, session_id: int, denied: bool = False
) -> bytes:
    """A Fetch response with correlation id 0."""
    message_type = response_type(FETCH, version)
    topic = message_type.__annotations__["responses"].__args__[0]
    made = topic.__annotations__["partitions"].__args__[0]
    told = made(
        partition_index=partition,
        error_code=ErrorCode.topic_authorization_failed if denied else ErrorCode.none,
        high_watermark=-1 if denied else 1 << 30,
        aborted_transactions=None,
        records=record_batch(batch) * batches,
    )
    more: dict[str, Any] = {}
    if version >= SESSIONS_FROM:
        more = {"error_code": ErrorCode.none, "session_id": session_id}
    message = message_type(
        throttle_time=milliseconds(0), responses=(topic(topic=TOPIC, partitions=(told,)),), **more
    )
    return response_frame(message, 0)


@lru_cache(maxsize=64)
def _read_response(version: int, frame: bytes) -> Any:
    return read_frame(response_type(FETCH, version), frame)


class Connection:
    """One connection of a consumer, through a relay to the broker."""

    def __init__(self, world: "World", consumer: Consumer) -> None:
        self.world: Final = world
        self.consumer: Final = consumer
        self.relay: Final[RelayDriver] = drive(world.engine, Ports(), world.traffic)
        self.open = True
        self.due: Final[list[float]] = []
        """The times of the fetches that await their responses."""
        self._broker: Final[list[bytes]] = []
        self._serving = False
        self._timer = 0.0
        self._sent = 0
        self._wanted: list[int] = []
        """The partition_max_bytes of the session's partition."""

    def send(self) -> None:
        """Send as many fetches as the client may have in flight."""
        consumer = self.consumer
        while self.open and len(self.due) < consumer.ahead:
            self._sent += 1
            self.due.append(self.world.now)
            frame = consumer.request(self._sent)
            self.world.after(LATENCY, partial(self._from_client, frame))

    def _from_client(self, frame: bytes) -> None:
        # The proxy does not read from a muted client: the relay keeps what it has not read.
        if self.open:
            self.relay.receive_from_client(frame, self.world.now)
            self._moved()

    def _moved(self) -> None:
        """Deliver the output of the relay."""
        self._split(self.relay.take_to_broker(), self._broker.append)
        responses: list[bytes] = []
        self._split(self.relay.take_to_client(), responses.append)
        for frame in responses:
            self.world.after(LATENCY, partial(self._to_client, frame))
        self._serve()
        due = self.relay.next_timer
        if due > 0.0 and due != self._timer:
            self._timer = due
            self.world.at(max(due, self.world.now), lambda: self._tick(due))

    @staticmethod
    def _split(pieces: list[bytes], take: Callable[[bytes], None]) -> None:
        data = b"".join(pieces)
        while data:
            size = 4 + int.from_bytes(data[:4], "big")
            take(data[:size])
            data = data[size:]

    def _tick(self, due: float) -> None:
        if self.open and self._timer == due:
            self._timer = 0.0
            if 0.0 < self.relay.next_timer <= self.world.now:
                self.relay.handle_timer(self.world.now)
            self._moved()

    def _serve(self) -> None:
        if self._broker and not self._serving:
            self._serving = True
            frame = self._broker.pop(0)
            self.world.after(LATENCY, lambda: self._try(frame, self.world.now))

    def _try(self, frame: bytes, since: float) -> None:
        """Respond if the broker has records, or if max_wait_ms is over."""
        if not self.open:
            return
        version = self.consumer.version
        request = _read_request(version, frame[:8] + bytes(4) + frame[12:])
        if self.consumer.denied:
            self._respond(int.from_bytes(frame[8:12], "big"), request, 0)
            return
        log = self.consumer.log
        wait = request.max_wait.total_seconds()
        if log.available < log.batch and self.world.now - since < wait:
            left = wait - (self.world.now - since)
            self.world.after(min(max(left, LATENCY), 0.05), lambda: self._try(frame, since))
            return
        bounds = [one.partition_max_bytes for topic in request.topics for one in topic.partitions]
        if not bounds and not self._wanted:
            self._respond(int.from_bytes(frame[8:12], "big"), request, 0)
            return
        self._wanted = bounds or self._wanted
        most = max(min(request.max_bytes, *self._wanted) // log.batch, 1) * log.batch
        size = min(most, log.available - log.available % log.batch, 4 << 20)
        log.available -= size
        self.world.read += size
        self._respond(int.from_bytes(frame[8:12], "big"), request, size)

    def _respond(self, correlation_id: int, request: Any, size: int) -> None:
        log = self.consumer.log
        in_session = getattr(request, "session_epoch", FINAL) != FINAL
        session_id = 4711 if in_session else NO_SESSION
        batches, denied = size // log.batch, self.consumer.denied
        found = _response(self.consumer.version, log.partition, log.batch, batches, session_id, denied)
        frame = found[:4] + correlation_id.to_bytes(4, "big") + found[8:]

        def arrive() -> None:
            self._serving = False
            if self.open:
                self.relay.receive_from_broker(frame, self.world.now)
                self._moved()

        self.world.after(LATENCY, arrive)

    def _to_client(self, frame: bytes) -> None:
        if not self.open:
            return
        consumer = self.consumer
        response = _read_response(consumer.version, frame[:4] + bytes(4) + frame[8:])
        size = sum(len(one.records or b"") for topic in response.responses for one in topic.partitions)
        consumer.got += size
        consumer.responses += 1
        consumer.empty += size == 0
        if size:
            consumer.received.append((self.world.now - START, size))
        consumer.longest_wait = max(consumer.longest_wait, self.world.now - self.due.pop(0))
        if consumer.sessions:
            consumer.session_id = response.session_id
            consumer.epoch = consumer.epoch + 1 if response.session_id else FULL
        pause = consumer.pause
        if consumer.honest:
            pause = max(pause, response.throttle_time.total_seconds())
        if consumer.hangs_up:
            self.open = False
            self.relay.end()
            self.world.after(LATENCY, lambda: self.world.connect(consumer))
        else:
            self.world.after(pause, self.send)


class World:
    """The clock, the broker and the consumers."""

    def __init__(self, engine: QuotaEngine, consumers: list[Consumer]) -> None:
        self.engine: Final = engine
        self.traffic: Final = Traffic()
        self.now = START
        self.consumers: Final = consumers
        self.read = 0
        """Bytes that the broker has sent."""
        self._events: Final[list[tuple[float, int, Callable[[], Any]]]] = []
        self._count = 0
        for consumer in consumers:
            consumer.epoch = FULL if consumer.sessions else FINAL
            self.at(START + consumer.starts_at, partial(self.connect, consumer))

    def at(self, when: float, act: Callable[[], Any]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, act))

    def after(self, seconds: float, act: Callable[[], Any]) -> None:
        self.at(self.now + seconds, act)

    def connect(self, consumer: Consumer) -> None:
        connection = Connection(self, consumer)
        if consumer.sessions:
            consumer.session_id, consumer.epoch = NO_SESSION, FULL
        connection.send()

    def run(self, seconds: float) -> None:
        """Run for so many seconds."""
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            self.now, _, act = heapq.heappop(self._events)
            act()
        self.now = until

    @property
    def got(self) -> int:
        """Bytes of records that all consumers have got."""
        return sum(consumer.got for consumer in self.consumers)
