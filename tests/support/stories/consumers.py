"""Consumers under quotas, simulated: relays, their clients, a broker with logs, and one clock.

A broker works on one request of a connection at a time. It responds at once if it has records, and otherwise
when max_wait_ms is over or records come. Each consumer reads a log of its own.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.relay.traffic import Traffic
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
    """Batches of one size; `available` bytes of them are there."""

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
    """How many fetches it sends before it has a response."""
    hangs_up: bool = False
    """Whether it connects anew for each fetch."""
    pause: float = 0.0
    """Seconds that it takes from a response to the next fetch."""
    honest: bool = True
    """Whether it waits as throttle_time_ms says."""
    sessions: bool = False
    alternates: bool = False
    """Whether each fetch has another leader epoch than the one before."""
    starts_at: float = 0.0
    got: int = 0
    """Bytes of records that have been delivered."""
    responses: int = 0
    empty: int = 0
    received: list[tuple[float, int]] = field(default_factory=list)
    """When how many bytes of records came."""
    longest_wait: float = 0.0
    session_id: int = NO_SESSION
    epoch: int = FINAL

    def request(self, correlation_id: int) -> bytes:
        message_type = request_type(FETCH, self.version)
        topic = message_type.__annotations__["topics"].__args__[0]
        made = topic.__annotations__["partitions"].__args__[0]
        fields: dict[str, Any] = {"fetch_offset": 0, "partition_max_bytes": 50 << 20}
        if self.version >= 9:
            fields["current_leader_epoch"] = correlation_id % 2 if self.alternates else -1
        if self.version >= 12:
            fields["last_fetched_epoch"] = -1
        if self.version >= 5:
            fields["log_start_offset"] = -1
        more: dict[str, Any] = {} if self.version >= 15 else {"replica_id": -1}
        if self.version >= 11:
            more["rack_id"] = ""
        if self.version >= SESSIONS_FROM:
            more |= {"forgotten_topics_data": ()}
            more |= {"session_id": self.session_id, "session_epoch": self.epoch if self.sessions else FINAL}
        message = message_type(
            max_wait=milliseconds(int(self.max_wait * 1000)),
            min_bytes=self.min_bytes,
            max_bytes=self.max_bytes,
            topics=(topic(topic=TOPIC, partitions=(made(partition=self.log.partition, **fields),)),),
            **more,
        )
        return request_frame(message, correlation_id, "client")


class Connection:
    """One connection of a consumer, through a relay to the broker."""

    def __init__(self, world: "World", consumer: Consumer) -> None:
        self.world: Final = world
        self.consumer: Final = consumer
        self.relay: Final[RelayDriver] = drive(world.engine, Ports(), Traffic())
        self.open = True
        self.due: Final[list[float]] = []
        """When the fetches were sent that await their responses."""
        self._broker: Final[list[bytes]] = []
        self._serving = False
        self._timer = 0.0
        self._sent = 0
        self._wanted: list[int] = []
        """The partition_max_bytes of the session's partition."""

    def send(self) -> None:
        """The client fills its window of fetches."""
        consumer = self.consumer
        while self.open and len(self.due) < consumer.ahead:
            self._sent += 1
            self.due.append(self.world.now)
            frame = consumer.request(self._sent)
            self.world.after(LATENCY, partial(self._from_client, frame))

    def _from_client(self, frame: bytes) -> None:
        # A muted client is not read from: the relay keeps what it has not read.
        if self.open:
            self.relay.receive_from_client(frame, self.world.now)
            self._moved()

    def _moved(self) -> None:
        """Deliver what the relay has put out."""
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
        """The broker responds when it has records, or the wait is over."""
        if not self.open:
            return
        version = self.consumer.version
        request = read_frame(request_type(FETCH, version), frame)
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
        version = self.consumer.version
        log = self.consumer.log
        records = record_batch(log.batch) * (size // log.batch)
        message_type = response_type(FETCH, version)
        topic = message_type.__annotations__["responses"].__args__[0]
        partition = topic.__annotations__["partitions"].__args__[0]
        told = partition(
            partition_index=log.partition,
            error_code=ErrorCode.none,
            high_watermark=1 << 30,
            aborted_transactions=None,
            records=records,
        )
        more: dict[str, Any] = {}
        if version >= SESSIONS_FROM:
            more = {"error_code": ErrorCode.none, "session_id": NO_SESSION}
            if getattr(request, "session_epoch", FINAL) != FINAL:
                more["session_id"] = 4711
        message = message_type(
            throttle_time=milliseconds(0), responses=(topic(topic=TOPIC, partitions=(told,)),), **more
        )
        frame = response_frame(message, correlation_id)

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
        response = read_frame(response_type(FETCH, consumer.version), frame)
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
    """The clock, and everything that happens."""

    def __init__(self, engine: QuotaEngine, consumers: list[Consumer]) -> None:
        self.engine: Final = engine
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
        """Let so many seconds pass."""
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            self.now, _, act = heapq.heappop(self._events)
            act()
        self.now = until

    @property
    def got(self) -> int:
        """Bytes of records that all consumers have got."""
        return sum(consumer.got for consumer in self.consumers)
