"""What clients get who do not wait, by what their quota allows, over minutes of simulated time.

`tests/integration/quotas/test_native_quotas.py` takes what Kafka gives from its own ClientQuotaManager.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from proxy.quota.engine import QuotaEngine
from proxy.relay.counters.traffic import Traffic
from tests.support.messages.exchanges import LENGTH_FIELD, chunks, fetch, fetched, produce, produced
from tests.support.messages.kio_messages import Ports
from tests.support.stories.playbook import START, RelayDriver, drive

LIMIT: Final = 5000.0
SECONDS: Final = 1200
TICK: Final = 0.5
_TRAFFIC: Final = Traffic()
"""The counters of a listener, which all connections share."""


@dataclass
class Sender:
    """A connection that sends Produce requests of one size as fast as it is read from."""

    limits: QuotaEngine
    size: int
    acks: int = 1
    relay: RelayDriver = field(init=False)
    appended: int = 0
    """The requests that the broker has got whole."""
    _sent: int = 0
    _forwarded: int = 0

    def __post_init__(self) -> None:
        self.relay = drive(self.limits, Ports(), _TRAFFIC)

    def live(self, now: float) -> None:
        """Let timers run until now, and send if the proxy reads."""
        while 0.0 < (due := self.relay.next_timer) <= now:
            self.relay.handle_timer(due)
            self._broker(due)

    def send(self, now: float) -> None:
        self._sent += 1
        for chunk in chunks(produce(self._sent, size=self.size, acks=self.acks)):
            self.relay.receive_from_client(chunk, now)
        self._broker(now)

    def _broker(self, now: float) -> None:
        self._forwarded += sum(len(piece) for piece in self.relay.take_to_broker())
        while (self.appended + 1) * (self.size + LENGTH_FIELD) <= self._forwarded:
            self.appended += 1
            if self.acks:
                self.relay.receive_from_broker(produced(self.appended), now)
        self.relay.take_to_client()

    @property
    def ready(self) -> bool:
        return not self.relay.client_muted


def ticks() -> Iterator[float]:
    return (START + step * TICK for step in range(int(SECONDS / TICK)))


def stay(limits: QuotaEngine, size: int, connections: int, acks: int = 1) -> int:
    """Connections that stay, and send whenever they are read from; the bytes that the broker gets."""
    senders = [Sender(limits, size, acks) for _ in range(connections)]
    for now in ticks():
        for sender in senders:
            sender.live(now)
            if sender.ready:
                sender.send(now)
    return size * sum(sender.appended for sender in senders)


def come_and_go(limits: QuotaEngine, size: int, connections: int, patience: float, acks: int = 1) -> int:
    """So many connections at a time, each with one request. They hang up and come again after `patience`
    seconds, or when the request has been forwarded.
    """
    senders: list[tuple[float, Sender]] = []
    gone: list[Sender] = []
    appended = 0
    for now in ticks():
        for entry in list(senders):
            until, sender = entry
            sender.live(now)
            if sender.appended or now >= until:
                senders.remove(entry)
                gone.append(sender)
        for sender in list(gone):
            # The proxy closes its side unless it keeps a request without acks.
            sender.live(now)
            if sender.appended or sender.acks or sender.relay.status.waits_for_debt:
                sender.relay.end()
                gone.remove(sender)
                appended += sender.appended
        while len(senders) < connections:
            sender = Sender(limits, size, acks)
            sender.send(now)
            senders.append((now + patience, sender))
    return size * (appended + sum(sender.appended for sender in gone + [one for _, one in senders]))


def keep_opening(limits: QuotaEngine, size: int, every: float) -> int:
    """A new connection every so often, with one request; all of them stay."""
    senders: list[Sender] = []
    opened = START
    for now in ticks():
        for sender in senders:
            sender.live(now)
        if now >= opened:
            opened = now + every
            sender = Sender(limits, size)
            sender.send(now)
            senders.append(sender)
    return size * sum(sender.appended for sender in senders)


def consume(limits: QuotaEngine, size: int, connections: int) -> int:
    """Consumers that wait as they are told, of batches of one size; the bytes that they get."""
    consumers = [drive(limits, Ports(), _TRAFFIC) for _ in range(connections)]
    numbers = [0] * connections
    got = 0
    for now in ticks():
        for place, relay in enumerate(consumers):
            while 0.0 < (due := relay.next_timer) <= now:
                relay.handle_timer(due)
            if not relay.client_muted and relay.status.idle:
                numbers[place] += 1
                relay.receive_from_client(fetch(numbers[place], max_bytes=100), now)
            if relay.take_to_broker():
                relay.receive_from_broker(fetched(numbers[place], size=size), now)
            got += size * (len(b"".join(relay.take_to_client())) >= size)
    return got


@dataclass(frozen=True)
class Attack:
    run: Callable[[QuotaEngine], int]
    """Returns the bytes that pass."""
    size: int
    kafka: str
    """The same attack, for ClientQuotas.java."""
    native: int
    """The bytes that pass in Kafka."""
    unpaid: int
    """The requests that the proxy may have forwarded before they are paid: one of each connection that is
    served.
    """


PRODUCERS: Final[dict[str, Attack]] = {
    "requests of four minutes each": Attack(
        lambda limits: stay(limits, 1_200_000, 1), 1_200_000, "stay 1200000 1", 7_200_000, 1
    ),
    "the same without acks": Attack(
        lambda limits: stay(limits, 1_200_000, 1, acks=0), 1_200_000, "stay 1200000 1", 7_200_000, 1
    ),
    "40 connections": Attack(
        lambda limits: stay(limits, 50_000, 40), 50_000, "stay 50000 40", 29_600_000, 40
    ),
    "40 connections of small requests": Attack(
        lambda limits: stay(limits, 1000, 40), 1000, "stay 1000 40", 8_921_000, 40
    ),
    "a connection per request": Attack(
        lambda limits: come_and_go(limits, 50_000, 1, 0.5), 50_000, "come_and_go 50000 1", 120_000_000, 1
    ),
    "a connection per request without acks": Attack(
        lambda limits: come_and_go(limits, 50_000, 1, 0.5, acks=0),
        50_000,
        "come_and_go 50000 1",
        120_000_000,
        1,
    ),
    "a connection per large request": Attack(
        lambda limits: come_and_go(limits, 1_200_000, 1, 300.0),
        1_200_000,
        "come_and_go 1200000 1",
        2_880_000_000,
        1,
    ),
    "40 at a time, a connection per request": Attack(
        lambda limits: come_and_go(limits, 50_000, 40, 30.0),
        50_000,
        "come_and_go 50000 40",
        4_800_000_000,
        1,
    ),
    "40 at a time, a connection per request without acks": Attack(
        lambda limits: come_and_go(limits, 50_000, 40, 30.0, acks=0),
        50_000,
        "come_and_go 50000 40",
        4_800_000_000,
        1,
    ),
    "ever more connections": Attack(
        lambda limits: keep_opening(limits, 50_000, 5.0), 50_000, "keep_opening 50000 5000", 12_000_000, 1
    ),
}
CONSUMERS: Final = {5_000: 5_460_000, 25_000: 4_000_000, 40_000: 4_000_000, 50_000: 3_000_000}
"""The bytes that a consumer of batches of one size gets in Kafka. It gets none of those that exceed the limit
of the window, 50,000 bytes.
"""
STARVED_SIZES: Final = (60_000, 80_000, 110_000, 150_000, 200_000)
