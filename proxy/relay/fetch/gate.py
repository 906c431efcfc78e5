"""FetchGate: decides what happens to a connection's fetches while quotas limit consumers or omit partitions.

A fetch is forwarded when its quotas have granted it bytes, and at least one of its partitions is not omitted.
Until then it waits here, and the relay reads no later request. If the wait is longer than the client's
max_wait_ms, the client gets an empty response with a throttle_time_ms, as from Kafka.

The proxy creates this response itself if the fetch names all its partitions, or belongs to a session that the
proxy manages. The broker counts the fetches of any other session. Such a fetch waits longer; then it is
forwarded, and its response is withheld. A ShareFetch waits as long; then it is forwarded with max_records 0,
so that the broker acquires no records, which it would lock if the response was withheld. A ShareFetch that
acknowledges records does not wait: the locks of these records would end, and others would get them again.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.grant import FetchGrant
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.exchange import Exchange, local_exchange
from proxy.relay.fetch.bounds import ask_for_no_records, lower_max_bytes, lower_max_wait
from proxy.relay.fetch.gated_fetch import ANSWER, FORWARD, WAIT, GatedFetch
from proxy.relay.fetch.grants import FetchGrants
from proxy.relay.fetch.plan_turns import PlanTurns
from proxy.relay.fetch.sessions import SESSION_MASK, FetchSessions
from proxy.relay.fetch.throttling import throttle_fetch
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.relay.inflight import InFlight
from proxy.relay.record_locks import RecordLocks
from proxy.wire.api_keys import FETCH, SHARE_FETCH
from proxy.wire.apis.api_01_fetch import after_bounds
from proxy.wire.apis.share_acknowledgements import acknowledges
from proxy.wire.error_codes import INVALID_FETCH_SESSION_EPOCH
from proxy.wire.errors import Malformed
from proxy.wire.fetch.request import NO_BOUND, is_full, read_session_epoch
from proxy.wire.fetch.rewrite import fetch_response
from proxy.wire.frames import Frame
from proxy.wire.views import RequestView

LONGEST_WAIT_SECONDS: Final = 5.0
"""The longest wait of a fetch in a session that the proxy does not manage. Clients accept a response that is
this much later than max_wait_ms.
"""
PARTITION_BYTES: Final = 28
"""The least number of bytes of a partition in a Fetch request."""


@final
class WaitingFetch:
    """A fetch that quotas limit, or from which they may omit partitions."""

    def __init__(
        self,
        frame: Frame,
        exchange: Exchange,
        view: RequestView,
        *,
        gated: GatedFetch | None,
        now: float,
    ) -> None:
        # The frame object is used again for the next frame.
        self.frame: Final = Frame(frame.pieces, frame.size, True)
        self.exchange: Final = exchange
        self.view: Final = view
        self.gated: Final = gated
        """None if no quota may omit a partition from the fetch."""
        self.grant: FetchGrant | None = None
        """None if no quota limits the bytes of the fetch, or before begin()."""
        self.begun = False
        """Whether its turn has come: the responses to the fetches before it have arrived."""
        self.since: Final = now
        self.wake_at = 0.0
        """When to ask again; 0.0 before begin()."""
        self.answerable: Final = view.api_key == FETCH and (exchange.full_fetch or gated is not None)
        """Whether the proxy can create the empty response itself."""
        self.acknowledges: Final = view.api_key == SHARE_FETCH and acknowledges(
            frame.pieces, view.max_bytes_at, view.api_version
        )
        self.wait_until = 0.0
        """The time until which the fetch waits for bytes."""

    def begin(self, grant: FetchGrant | None, locks: RecordLocks, now: float) -> None:
        """Begin the wait of the fetch, because its turn has come."""
        self.begun = True
        self.grant = grant
        if self.acknowledges:
            self.wait_until = now
            return
        wait = max(self.view.max_wait_ms, 0) / 1000.0
        longest = min(LONGEST_WAIT_SECONDS, locks.longest_wait)
        self.wait_until = now + (wait if self.answerable else max(wait, longest))


@final
class FetchGate:
    """The gate of one connection. One fetch waits at a time."""

    def __init__(
        self,
        engine: QuotaEngine,
        in_flight: InFlight,
        names: IdBudget,
        turns: PlanTurns,
        between_brokers: bool = False,
        session_mask: int = SESSION_MASK,
    ) -> None:
        """`session_mask`: the bits in which the client's session ids differ from the broker's."""
        self._session_mask: Final = session_mask
        self._engine: Final = engine
        self._in_flight: Final = in_flight
        self._names: Final = names
        self._turns: Final = turns
        self._between_brokers: Final = between_brokers
        self._fetches: FetchSessions | None = None
        """None while no quota omits partitions."""
        self._fetch: WaitingFetch | None = None
        """The fetch that waits."""
        self._grants: Final = FetchGrants(engine)

    @property
    def reads(self) -> bool:
        """Whether fetches must be read beyond their bounds."""
        return self._engine.omits or self._fetches is not None or self._between_brokers

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower at the client's end, and the number of messages that it lacks."""
        return None if self._fetches is None else self._fetches.follower

    @property
    def waiting(self) -> bool:
        """Whether a fetch waits."""
        return self._fetch is not None

    @property
    def wake_at(self) -> float:
        """When wake() is due; 0.0 for never."""
        return 0.0 if self._fetch is None else self._fetch.wake_at

    @property
    def awaits_response(self) -> bool:
        """Whether the waiting fetch may continue because the previous ones have got their responses."""
        fetch = self._fetch
        return fetch is not None and not fetch.begun and not self._grants.in_flight

    def forwards(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> bool:
        """Return whether to forward a fetch, with the view's edits. If not, it waits here or has been
        answered.
        """
        gated: GatedFetch | None = None
        if view.api_key == FETCH and self.reads:
            gated = self._start(frame, exchange, view, now)
            if gated is not None and gated.session is None:
                self._respond(gated, now)
                return False
            if gated is not None and gated.update is not None:
                self._read_session(frame, exchange, view)
                self._fetch = WaitingFetch(frame, exchange, view, gated=gated, now=now)
                self._fetch.wake_at = gated.wake_at
                return False
        if self._grants.in_flight:
            return self._forwards_beside(frame, exchange, view, gated, now)
        grant: FetchGrant | None = None
        if self._engine.limits_fetches:
            grant = self._grants.begin(view, exchange.client, now)
        if grant is None and gated is None:
            return True
        self._read_session(frame, exchange, view)
        wait = 0.0 if grant is None else grant.ask(now)
        if grant is not None and gated is None and wait <= 0.0:
            # Nearly all fetches: nothing is kept of one that does not wait.
            self._allow(exchange, view, grant)
            return True
        fetch = WaitingFetch(frame, exchange, view, gated=gated, now=now)
        fetch.begin(grant, self._in_flight.record_locks, now)
        outcome = FORWARD if grant is None else self._take_reply(fetch, grant, wait, now)
        return self._finish(fetch, outcome, now)

    def _forwards_beside(
        self, frame: Frame, exchange: Exchange, view: RequestView, gated: GatedFetch | None, now: float
    ) -> bool:
        """Return whether to forward a fetch while others that quotas limit await their responses. If not, it
        waits for these.
        """
        self._read_session(frame, exchange, view)
        if gated is None and view.api_key == FETCH:
            grant = self._grants.beside(view, exchange.client, now)
            if grant is not None:
                self._allow(exchange, view, grant)
                return True
        self._fetch = WaitingFetch(frame, exchange, view, gated=gated, now=now)
        return False

    def _read_session(self, frame: Frame, exchange: Exchange, view: RequestView) -> None:
        """Note whether a fetch names all its partitions. Raises Malformed if it has not been read whole."""
        if view.partial:
            raise _too_large(frame)
        if view.api_key == FETCH:
            epoch = read_session_epoch(frame.pieces, after_bounds(view), view.api_version)
            exchange.full_fetch = is_full(epoch)

    def _start(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> GatedFetch | None:
        """Return the fetch if partitions may be omitted from it, else None."""
        fetches = self._fetches
        if fetches is None:
            fetches = self._fetches = FetchSessions(
                self._engine, self._names, self._turns, self._between_brokers, self._session_mask
            )
        elif not fetches.needed:
            self._fetches = None
            return None
        if view.partial:
            if not self._between_brokers:
                raise _too_large(frame)
            # No quota may end a connection between brokers, so the fetch is forwarded with all partitions.
            return None
        return fetches.start(frame, exchange, view, now)

    def _finish(self, fetch: WaitingFetch, outcome: int, now: float) -> bool:
        """Return whether to forward a fetch. `outcome` is what its grant, if it has one, allows."""
        gated = fetch.gated
        if outcome == FORWARD and gated is not None and self._fetches is not None:
            outcome = self._fetches.go_on(gated, now)
            fetch.wake_at = gated.wake_at
            if outcome == ANSWER:
                self._respond(gated, now)
                if fetch.grant is not None:
                    fetch.grant.cancel()
        if outcome == WAIT:
            self._fetch = fetch
        return outcome == FORWARD

    # Limits of bytes

    def _take_reply(self, fetch: WaitingFetch, grant: FetchGrant, wait: float, now: float) -> int:
        """Return FORWARD, WAIT or ANSWER for a fetch. `wait` is the reply of FetchGrant.ask()."""
        if wait <= 0.0:
            self._count_wait(fetch, grant, now)
            self._allow(fetch.exchange, fetch.view, grant)
            return FORWARD
        if now < fetch.wait_until:
            fetch.wake_at = min(now + wait, fetch.wait_until)
            return WAIT
        return self._end_wait(fetch, grant, now)

    def _end_wait(self, fetch: WaitingFetch, grant: FetchGrant, now: float) -> int:
        """End the wait of a fetch without a grant; return FORWARD or ANSWER."""
        if fetch.answerable:
            self._answer(fetch, grant, now)
            return ANSWER
        if fetch.view.api_key == FETCH:
            self._withhold(fetch, grant, now)
        else:
            self._forward_acknowledgements(fetch, grant, now)
        return FORWARD

    def _allow(self, exchange: Exchange, view: RequestView, grant: FetchGrant) -> None:
        exchange.grant = grant
        if grant.max_bytes != NO_BOUND:
            lower_max_bytes(view, grant.max_bytes)

    def _withhold(self, fetch: WaitingFetch, grant: FetchGrant, now: float) -> None:
        """Forward a fetch to keep its session in step with the broker, without delivering the response."""
        fetch.exchange.grant = grant
        fetch.exchange.withheld = True
        self._count_wait(fetch, grant, now)
        lower_max_bytes(fetch.view, 1)
        lower_max_wait(fetch.view, 0)

    def _forward_acknowledgements(self, fetch: WaitingFetch, grant: FetchGrant, now: float) -> None:
        """Forward a ShareFetch without a grant; its next one has the same place in the queues."""
        self._count_wait(fetch, grant, now)
        grant.keep_places(now + LONGEST_WAIT_SECONDS)
        ask_for_no_records(fetch.view)
        lower_max_wait(fetch.view, 0)

    def _count_wait(self, fetch: WaitingFetch, grant: FetchGrant, now: float) -> None:
        if grant.longest is not None:
            fetch.exchange.throttled_seconds += now - fetch.since
        self._engine.count_wait(fetch.view, fetch.exchange.client, grant, now - fetch.since, now)

    def _answer(self, fetch: WaitingFetch, grant: FetchGrant, now: float) -> None:
        """Respond without records, and mute the client until the debt is paid."""
        exchange = fetch.exchange
        view = fetch.view
        gated = fetch.gated
        self._count_wait(fetch, grant, now)
        until = throttle_fetch(exchange, grant, self._engine, self._in_flight, now)
        self._engine.count_wait(view, exchange.client, grant, until - now, until)
        if gated is not None and self._fetches is not None and not exchange.full_fetch:
            self._fetches.give_up(gated, now)
            self._respond(gated, now)
            return
        response = fetch_response(
            view.api_version,
            view.correlation_id,
            throttle_time_ms=self._in_flight.announced(exchange.throttled_until, now),
        )
        self._add(exchange, view, response, now)

    # Responses of the proxy

    def reject_session(self, exchange: Exchange, view: RequestView, now: float) -> None:
        """Respond to a request of a session whose size is not known: the client opens a new session, and
        loses nothing.
        """
        error = INVALID_FETCH_SESSION_EPOCH
        response = fetch_response(view.api_version, view.correlation_id, error_code=error)
        self._add(exchange, view, response, now)

    def _respond(self, fetch: GatedFetch, now: float) -> None:
        self._add(fetch.exchange, fetch.view, fetch.answer, now)

    def _add(self, asked: Exchange, view: RequestView, response: bytes, now: float) -> None:
        exchange = local_exchange(asked.correlation_id, asked.client, FETCH, response)
        if view.api_version == 0:
            exchange.delayed_until = self._in_flight.delayed(asked.throttled_until, now)
        exchange.throttled_until = asked.throttled_until
        self._in_flight.count_throttle(asked)
        self._in_flight.answer(exchange, view, view.size // PARTITION_BYTES, now)

    # Time

    def wake(self, now: float) -> WaitingFetch | None:
        """Ask the quotas again for the waiting fetch; return it if it is forwarded."""
        fetch = self._fetch
        if fetch is None or self._updates(fetch, now):
            return None
        if not fetch.begun and self._grants.in_flight:
            fetch.wake_at = 0.0
            return None
        self._fetch = None
        if not fetch.begun:
            grant = self._grants.begin(fetch.view, fetch.exchange.client, now)
            fetch.begin(grant, self._in_flight.record_locks, now)
        grant = fetch.grant
        outcome = FORWARD
        if grant is not None and not grant.granted:
            outcome = self._take_reply(fetch, grant, grant.ask(now), now)
        return fetch if self._finish(fetch, outcome, now) else None

    def _updates(self, fetch: WaitingFetch, now: float) -> bool:
        """Whether the partitions of a large fetch are still being taken into its session."""
        gated = fetch.gated
        fetches = self._fetches
        if gated is None or gated.update is None or fetches is None:
            return False
        if now >= fetch.wake_at:
            fetches.updated(gated, now)
            fetch.wake_at = gated.wake_at
        return True

    def give_up(self, now: float) -> WaitingFetch | None:
        """End the wait of the waiting fetch; return it if it is forwarded."""
        fetch = self._fetch
        if fetch is None:
            return None
        self._fetch = None
        # A fetch that waits for earlier responses has not asked its quotas.
        grant = fetch.grant if fetch.begun else FetchGrant()
        if grant is not None and not grant.granted:
            return fetch if self._end_wait(fetch, grant, now) == FORWARD else None
        if fetch.gated is None:
            return fetch
        if grant is not None:
            grant.cancel()
        if self._fetches is not None:
            self._fetches.give_up(fetch.gated, now)
            self._respond(fetch.gated, now)
        return None

    def end(self) -> None:
        """Give up the places in queues, and have reservations charged, because the connection is over."""
        self._grants.end()
        if self._fetches is not None:
            self._fetches.end()


def _too_large(frame: Frame) -> Malformed:
    return Malformed(
        f"a fetch has {frame.size} bytes; the proxy takes {MAX_BUFFERED_FRAME_BYTES} at most while a quota "
        f"limits consumers"
    )
