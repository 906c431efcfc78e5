"""Playbook: what a relay does, told as a story; the clock is a number.

    Playbook(relay).client(request).to_broker(request).broker(response).to_client(patched).muted(2.5)

Times are seconds since the story began. Every step that says what comes out takes it away, so a story misses
nothing that a relay does; one without frames says that nothing comes.
"""

from typing import Any, Final, Self

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.enforcement import PACE
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange
from proxy.relay.fetch.sessions import SESSION_MASK
from proxy.relay.intercepted import Intercepted
from proxy.relay.relay import Relay
from proxy.relay.settings import NO_INTERCEPTED_APIS, RelaySettings
from proxy.wire.addresses import Address, Addresses
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.topic_names import TopicNames
from tests.support.messages.kio_messages import PROXY_HOST, PROXY_PORT, Ports
from tests.support.quotas.enforcement import enforcement

START: Final = 1000.0
"""Stories do not begin at 0, which means never to the relay."""
MAX_FRAME_BYTES: Final = 100 << 20
EVERYONE: Final = QuotaEntity(DEFAULT, None)
EACH_CLIENT: Final = QuotaEntity(None, DEFAULT)

Quotas = dict[QuotaEntity, dict[str, float]]
"""By entity the values of its quotas."""


def engine(
    quotas: Quotas,
    algorithm: str = PACE,
    resources: Resources = NO_RESOURCES,
    **settings: Any,
) -> QuotaEngine:
    """An engine with every kind of quota and these limits; `settings` are those of enforcement()."""
    made = QuotaEngine([kind.build() for kind in load_kinds()])
    found = enforcement(algorithm=algorithm, **settings)
    made.configure(Limits(quotas, resources=resources, settings=found), START)
    return made


def new_relay(
    quotas: Quotas | None = None,
    traffic: Traffic | None = None,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    algorithm: str = PACE,
    intercepted_api_keys: frozenset[int] = NO_INTERCEPTED_APIS,
    resources: Resources = NO_RESOURCES,
    topic_names: TopicNames | None = None,
    protected: ProtectedTopics | None = None,
    large_frames: LargeFrames | None = None,
) -> "RelayDriver":
    """A relay of an unauthenticated client, with its driver."""
    return drive(
        engine(quotas or {}, algorithm, resources),
        Ports(),
        traffic or Traffic(),
        max_frame_bytes=max_frame_bytes,
        intercepted_api_keys=intercepted_api_keys,
        topic_names=topic_names,
        protected=protected,
        large_frames=large_frames,
    )


def drive(
    engine: QuotaEngine,
    addresses: Addresses,
    traffic: Traffic,
    *,
    principal: str = "ANONYMOUS",
    client_address: str = "127.0.0.1",
    node_id: int = -1,
    session_mask: int = SESSION_MASK,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    **settings: Any,
) -> "RelayDriver":
    """A relay with its driver; `settings` are those of RelaySettings."""
    return RelayDriver(
        Relay(
            engine,
            addresses,
            traffic,
            RelaySettings(max_frame_bytes=max_frame_bytes, **settings),
            principal=principal,
            client_address=client_address,
            node_id=node_id,
            session_mask=session_mask,
        ),
        addresses,
    )


class RelayDriver:
    """Calls a relay as a connection does, and keeps its output until a test takes it."""

    def __init__(self, relay: Relay, addresses: Addresses) -> None:
        self.relay: Final = relay
        self.asked_for: Final[list[int]] = []
        """Node ids of the brokers that needed a port before a response could be forwarded."""
        self._addresses: Final = addresses
        self._to_broker: list[bytes] = []
        self._to_client: list[bytes] = []
        self._intercepted: list[Intercepted] = []
        self._broker_responses: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.relay, name)

    def _keep(self) -> None:
        """Keep the output of a call, even if the call ended the connection."""
        output = self.relay.output
        self._to_broker += output.to_broker
        self._to_client += output.to_client
        self._intercepted += output.intercepted
        self._broker_responses += output.broker_responses

    def receive_from_client(self, data: bytes, now: float) -> None:
        try:
            self.relay.receive_from_client(data, now)
        finally:
            self._keep()

    def receive_from_broker(self, data: bytes, now: float) -> None:
        try:
            self.relay.receive_from_broker(data, now)
        finally:
            self._keep()
        brokers = self.relay.output.unknown_brokers
        if brokers:
            for broker in brokers:
                self.asked_for.append(broker.node_id)
                self._addresses.put(broker, Address(PROXY_HOST, (PROXY_PORT + broker.node_id) % 65536))
            try:
                self.relay.brokers_known(now)
            finally:
                self._keep()
            assert not self.relay.output.unknown_brokers, "the shell has told of all of them"

    def handle_timer(self, now: float) -> None:
        try:
            self.relay.handle_timer(now)
        finally:
            self._keep()

    def take_turn(self, now: float) -> None:
        try:
            self.relay.take_turn(now)
        finally:
            self._keep()

    def drain(self, now: float) -> None:
        try:
            self.relay.drain(now)
        finally:
            self._keep()

    def forward(self, exchange: Exchange, frame: bytes, now: float) -> None:
        try:
            self.relay.forward(exchange, frame, now)
        finally:
            self._keep()

    def answer(self, exchange: Exchange, response: bytes, now: float, *how: Any, **more: Any) -> None:
        try:
            self.relay.answer(exchange, response, now, *how, **more)
        finally:
            self._keep()

    def ask_broker(self, exchange: Exchange, frame: bytes, now: float) -> None:
        try:
            self.relay.ask_broker(exchange, frame, now)
        finally:
            self._keep()

    def take_to_broker(self) -> list[bytes]:
        taken, self._to_broker = self._to_broker, []
        self.relay.broker_took_all()
        return taken

    def take_to_client(self) -> list[bytes]:
        taken, self._to_client = self._to_client, []
        return taken

    def take_intercepted(self) -> list[Intercepted]:
        taken, self._intercepted = self._intercepted, []
        return taken

    def take_broker_responses(self) -> list[bytes]:
        taken, self._broker_responses = self._broker_responses, []
        return taken

    @property
    def client_muted(self) -> bool:
        return self.relay.output.client_muted

    @property
    def broker_paused(self) -> bool:
        return self.relay.output.broker_paused

    @property
    def next_timer(self) -> float:
        return self.relay.output.next_timer


class Playbook:
    """The story of one connection."""

    def __init__(self, relay: RelayDriver) -> None:
        self.relay: Final = relay
        self._now = START

    # Input

    def client(self, *chunks: bytes) -> Self:
        """The client sends these chunks."""
        for chunk in chunks:
            self.relay.receive_from_client(chunk, self._now)
        return self

    def broker(self, *chunks: bytes) -> Self:
        """The broker sends these chunks."""
        for chunk in chunks:
            self.relay.receive_from_broker(chunk, self._now)
        return self

    def broker_reached(self) -> Self:
        """The broker is connected."""
        self.relay.broker_reached(self._now)
        return self

    def turn(self) -> Self:
        """It may be the turn of the list that waits."""
        self.relay.take_turn(self._now)
        return self

    def at(self, seconds: float) -> Self:
        """Set the clock to this time; timers that are due on the way run."""
        until = START + seconds
        assert until >= self._now, "the clock does not go back"
        while 0.0 < (due := self.relay.next_timer) <= until:
            self._now = max(self._now, due)
            self.relay.handle_timer(self._now)
            assert self.relay.next_timer != due, "a timer that has run is still due"
        self._now = until
        return self

    def own(self, response: bytes) -> Self:
        """The proxy answers the request that it has intercepted."""
        (intercepted,) = self.relay.take_intercepted()
        self.relay.answer(intercepted.exchange, response, self._now)
        return self

    def drain(self) -> Self:
        self.relay.drain(self._now)
        return self

    # Output

    def to_broker(self, *frames: bytes) -> Self:
        """Check that the relay has sent exactly this to the broker."""
        _same(b"".join(self.relay.take_to_broker()), b"".join(frames))
        return self

    def to_client(self, *frames: bytes) -> Self:
        """Check that the relay has sent exactly this to the client."""
        _same(b"".join(self.relay.take_to_client()), b"".join(frames))
        return self

    def muted(self, until: float) -> Self:
        assert self.relay.client_muted, "the client is not muted"
        return self.timer(until)

    def unmuted(self) -> Self:
        assert not self.relay.client_muted, f"the client is muted until {self.relay.next_timer - START}"
        return self

    def timer(self, due: float | None) -> Self:
        """Check when the next timer is due; None: there is none."""
        assert self.relay.next_timer == (0.0 if due is None else pytest.approx(START + due, abs=1e-6))
        return self

    def idle(self) -> Self:
        assert self.relay.status.idle
        return self

    def busy(self) -> Self:
        assert not self.relay.status.idle
        return self

    # Ends

    def client_fails(self, *chunks: bytes, reason: str, says: str) -> None:
        """Check that the client's chunks end the connection."""
        with pytest.raises(RelayError, match=says) as caught:
            self.client(*chunks)
        assert caught.value.reason == reason

    def broker_fails(self, *chunks: bytes, reason: str, says: str) -> None:
        """Check that the broker's chunks end the connection."""
        with pytest.raises(RelayError, match=says) as caught:
            self.broker(*chunks)
        assert caught.value.reason == reason

    def fails_at(self, seconds: float, reason: str, says: str) -> None:
        """Check that a timer ends the connection before this time."""
        with pytest.raises(RelayError, match=says) as caught:
            self.at(seconds)
        assert caught.value.reason == reason


def _same(got: bytes, wanted: bytes) -> None:
    """Compare two frames; the message of a failure is short, because frames may have megabytes."""
    if got == wanted:
        return
    at = next((i for i, (one, other) in enumerate(zip(got, wanted, strict=False)) if one != other), -1)
    at = min(len(got), len(wanted)) if at < 0 else at
    pytest.fail(
        f"{len(got)} bytes came, {len(wanted)} were to come; they differ from byte {at} on: "
        f"{got[at : at + 60]!r} instead of {wanted[at : at + 60]!r}"
    )
