"""What senders get who do not wait, by what their quota allows, over minutes of simulated time.

Kafka mutes each connection for its whole throttle time, and would give them 0 to 1.2 times their quota.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.quota.limits.resources import Resources
from proxy.relay.traffic import Traffic
from tests.support.messages.exchanges import TOPIC, chunks, fetch, fetched, produce, produced
from tests.support.messages.kio_messages import Ports
from tests.support.stories.playbook import EVERYONE, START, RelayDriver, drive, engine

LIMIT = 5000.0
SECONDS = 1200
UNPAID = 2_000_000
"""One request of each of 40 connections: a request is forwarded before it is paid, as in Kafka."""
TICK = 0.5
CLIENT_QUOTA = {EVERYONE: {"producer_byte_rate": LIMIT, "consumer_byte_rate": LIMIT}}
TOPIC_QUOTA = Resources({TOPIC: {PRODUCER_BYTE_RATE.name: str(int(LIMIT))}})


@dataclass
class Sender:
    """A connection that sends Produce requests of one size as fast as it is read from."""

    limits: QuotaEngine
    size: int
    acks: int = 1
    relay: RelayDriver = field(init=False)
    forwarded: int = 0
    _sent: int = 0
    _responded: int = 0

    def __post_init__(self) -> None:
        self.relay = drive(self.limits, Ports(), Traffic())

    def live(self, now: float) -> None:
        """Let timers run until now, and send if the proxy reads."""
        while 0.0 < (due := self.relay.next_timer) <= now:
            self.relay.handle_timer(due)
            self._broker(due)
        self._broker(now)

    def send(self, now: float) -> None:
        self._sent += 1
        for chunk in chunks(produce(self._sent, size=self.size, acks=self.acks)):
            self.relay.receive_from_client(chunk, now)
        self._broker(now)

    def _broker(self, now: float) -> None:
        self.forwarded += sum(len(piece) for piece in self.relay.take_to_broker())
        while self.acks and (self._responded + 1) * (self.size + 4) <= self.forwarded:
            self._responded += 1
            self.relay.receive_from_broker(produced(self._responded), now)
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
    return sum(sender.forwarded for sender in senders)


def come_and_go(limits: QuotaEngine, size: int, connections: int, patience: float, acks: int = 1) -> int:
    """So many connections at a time, each with one request. They hang up and come again after `patience`
    seconds, or when the request has been forwarded.
    """
    bytes_in = 0
    senders: list[tuple[float, Sender]] = []
    for now in ticks():
        for entry in list(senders):
            until, sender = entry
            sender.live(now)
            if sender.forwarded > size or now >= until:
                sender.relay.end()
                bytes_in += sender.forwarded
                senders.remove(entry)
        while len(senders) < connections:
            sender = Sender(limits, size, acks)
            sender.send(now)
            senders.append((now + patience, sender))
    return bytes_in + sum(sender.forwarded for _, sender in senders)


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
    return sum(sender.forwarded for sender in senders)


ATTACKS: dict[str, Callable[[QuotaEngine], int]] = {
    "requests of four minutes each": lambda limits: stay(limits, 1_200_000, 1),
    "the same without acks": lambda limits: stay(limits, 1_200_000, 1, acks=0),
    "40 connections": lambda limits: stay(limits, 50_000, 40),
    "a connection per request": lambda limits: come_and_go(limits, 50_000, 1, 0.5),
    "40 at a time, a connection per request": lambda limits: come_and_go(limits, 50_000, 40, 30.0),
    "ever more connections": lambda limits: keep_opening(limits, 50_000, 5.0),
}


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_producer_gets_its_quota(attack: Callable[[QuotaEngine], int], algorithm: str) -> None:
    got = attack(engine(CLIENT_QUOTA, algorithm, max_throttle_seconds=10.0))
    assert 0.7 * LIMIT * SECONDS < got <= 1.05 * LIMIT * SECONDS + UNPAID


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_partition_gets_its_quota(attack: Callable[[QuotaEngine], int]) -> None:
    got = attack(engine({}, PACE, TOPIC_QUOTA, max_throttle_seconds=10.0))
    assert 0.7 * LIMIT * SECONDS < got <= 1.05 * LIMIT * SECONDS + UNPAID


@pytest.mark.parametrize(("algorithm", "most"), [(PACE, 1.21), (WINDOW, 1.41)])
def test_an_obedient_consumer_of_large_batches_gets_its_quota(algorithm: str, most: float) -> None:
    """Kafka's own rate forgets a batch after its window, and so gives four thirds of the quota."""
    relay = drive(engine(CLIENT_QUOTA, algorithm, max_throttle_seconds=10.0), Ports(), Traffic())
    got = number = 0
    for now in ticks():
        while 0.0 < (due := relay.next_timer) <= now:
            relay.handle_timer(due)
        if not relay.client_muted:
            number += 1
            relay.receive_from_client(fetch(number, max_bytes=100), now)
            relay.receive_from_broker(fetched(number, size=200_000), now)
        got += sum(len(piece) for piece in relay.take_to_client())
    assert 0.7 < got / (LIMIT * SECONDS) <= most
