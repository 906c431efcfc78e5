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
from proxy.quota.fetch_grant import FetchGrant
from proxy.relay.exchange import Exchange, local_exchange
from proxy.relay.fetch.bounds import ask_for_no_records, lower_max_bytes, lower_max_wait
from proxy.relay.fetch.plan_turns import PlanTurns
from proxy.relay.fetch.sessions import ALLOW, ANSWER, SESSION_MASK, WAIT, FetchSessions, GatedFetch
from proxy.relay.fetch.throttling import throttle_fetch
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.relay.id_budget import IdBudget
from proxy.relay.inflight import InFlight
from proxy.relay.record_locks import RecordLocks
from proxy.wire.api_keys import FETCH, SHARE_FETCH
from proxy.wire.apis.api_01_fetch import after_bounds
from proxy.wire.apis.share_acknowledgements import acknowledges
from proxy.wire.errors import Malformed
from proxy.wire.fetch_request import is_full, read_session
from proxy.wire.fetch_rewrite import fetch_response
from proxy.wire.frames import Frame
from proxy.wire.views import RequestView

LONGEST_WAIT_SECONDS: Final = 5.0
"""The longest wait of a fetch in a session that the proxy does not manage. Clients accept a response that is
this much later than max_wait_ms.
"""
PARTITION_BYTES: Final = 28
"""The least number of bytes of a partition in a Fetch request."""
UNASKED: Final = -1.0
"""In place of a wait: the grant has not been asked."""
BESIDE_AT_MOST: Final = 7
"""The most fetches that a connection has in flight beside the last one, if quotas limit them."""


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
        """None if no quota limits the bytes of the fetch, or before the quotas have been asked."""
        self.asked = False
        """Whether the quotas have been asked for a grant, because the turn of the fetch has come."""
        self.since: Final = now
        self.wake_at = 0.0
        """When to ask again; 0.0: when the responses to the previous fetches have arrived."""
        self.answerable: Final = view.api_key == FETCH and (exchange.full_fetch or gated is not None)
        """Whether the proxy can create the empty response itself."""
        self.acknowledges: Final = view.api_key == SHARE_FETCH and acknowledges(
            frame.pieces, view.max_bytes_at, view.api_version
        )
        self.wait_until = 0.0
        """The time until which the fetch waits for bytes."""

    def begin(self, grant: FetchGrant | None, locks: RecordLocks, now: float) -> None:
        """Begin the wait of the fetch, because its turn has come."""
        self.asked = True
        self.grant = grant
        if self.acknowledges:
            self.wait_until = now
            return
        wait = max(self.view.max_wait_ms, 0) / 1000.0
        longest = min(LONGEST_WAIT_SECONDS, locks.longest_wait)
        self.wait_until = now + (wait if self.answerable else max(wait, longest))


@final
class FetchGate:
    """The gate of one connection. One fetch waits at a time.

    While fetches that quotas limit are in flight, BESIDE_AT_MOST at most, the next one is forwarded only if
    there are tokens for all of them. Otherwise it waits until their responses have arrived. A client loses
    little by that: a broker, too, processes a fetch only when it has responded to the last.
    """

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
        self._grant: FetchGrant | None = None
        """The bytes that the quotas have granted to the last fetch."""
        self._earlier: Final[list[FetchGrant]] = []
        """The grants before it that await their responses, and among the first of them some whose responses
        have arrived: their places in the queues become those of later fetches.
        """

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
        return fetch is not None and fetch.wake_at == 0.0 and not self._busy()

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
        grant: FetchGrant | None = None
        busy = self._busy()
        if busy and gated is None and self._goes_beside(frame, exchange, view, now):
            return True
        if self._engine.limits_fetches and not busy:
            self._end_earlier()
            grant = self._engine.grant(view, exchange.client, self._grant, now)
        if gated is None and grant is None and not busy:
            return True
        if view.partial:
            raise _too_large(frame)
        if view.api_key == FETCH:
            session = read_session(frame.pieces, after_bounds(view), view.api_version)
            exchange.full_fetch = is_full(session[1])
        wait = UNASKED
        if grant is not None:
            wait = grant.ask(now)
            if wait <= 0.0 and gated is None:
                # Nearly all fetches: nothing is kept of one that does not wait.
                self._allow(exchange, view, grant)
                return True
        fetch = WaitingFetch(frame, exchange, view, gated=gated, now=now)
        if not busy:
            fetch.begin(grant, self._in_flight.record_locks, now)
        return self._forwards(fetch, wait, now)

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

    def _busy(self) -> bool:
        """Whether a fetch that quotas limit awaits its response."""
        grant = self._grant
        return grant is not None and grant.granted and not grant.settled

    def _goes_beside(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> bool:
        """Return whether to forward a fetch while others that quotas limit await their responses: not if it
        might have to wait for tokens.
        """
        last = self._grant
        earlier = self._earlier
        if last is None or view.api_key != FETCH or view.partial or not self._engine.limits_fetches:
            return False
        spare = earlier[0] if earlier and earlier[0].settled else None
        if len(earlier) >= BESIDE_AT_MOST and spare is None:
            return False
        grant = self._engine.grant(view, exchange.client, last if spare is None else spare, now)
        if grant is None or not grant.ask_beside(len(earlier) + 1, view.max_bytes, now):
            return False
        if spare is not None:
            earlier.pop(0)
        earlier.append(last)
        session = read_session(frame.pieces, after_bounds(view), view.api_version)
        exchange.full_fetch = is_full(session[1])
        self._allow(exchange, view, grant)
        return True

    def _end_earlier(self) -> None:
        """Give up the places of fetches whose responses have arrived, but those of the last one."""
        for grant in self._earlier:
            grant.end()
        self._earlier.clear()

    def _forwards(self, fetch: WaitingFetch, wait: float, now: float) -> bool:
        """Decide what happens to a fetch now: return whether to forward it. If not, it waits or is answered.

        `wait`: what the grant has replied to ask() now, or UNASKED.
        """
        outcome = ALLOW
        if not fetch.asked:
            if self._busy():
                fetch.wake_at = 0.0
                self._fetch = fetch
                return False
            self._end_earlier()
            grant = self._engine.grant(fetch.view, fetch.exchange.client, self._grant, now)
            fetch.begin(grant, self._in_flight.record_locks, now)
        grant = fetch.grant
        if grant is not None and (wait >= 0.0 or not grant.granted):
            outcome = self._ask(fetch, grant, grant.ask(now) if wait < 0.0 else wait, now)
            if outcome == ANSWER:
                self._answer(fetch, grant, now)
        if outcome == ALLOW and fetch.gated is not None and self._fetches is not None:
            outcome = self._fetches.go_on(fetch.gated, now)
            fetch.wake_at = fetch.gated.wake_at
            if outcome == ANSWER:
                self._respond(fetch.gated, now)
                if grant is not None:
                    grant.settle(grant.size, 0, now, now)
        if outcome == WAIT:
            self._fetch = fetch
        return outcome == ALLOW

    # Limits of bytes

    def _ask(self, fetch: WaitingFetch, grant: FetchGrant, wait: float, now: float) -> int:
        """Return ALLOW, WAIT or ANSWER for a fetch. `wait`: the seconds that its grant has replied; 0.0 if it
        is granted.
        """
        if wait <= 0.0:
            self._count_wait(fetch, grant, now)
            self._allow(fetch.exchange, fetch.view, grant)
            return ALLOW
        over = now >= fetch.wait_until
        if over and fetch.answerable:
            return ANSWER
        if over and fetch.view.api_key != FETCH:
            self._forward_acknowledgements(fetch, grant, now)
            return ALLOW
        if over:
            self._withhold(fetch, grant, now)
            return ALLOW
        fetch.wake_at = min(now + wait, fetch.wait_until)
        return WAIT

    def _allow(self, exchange: Exchange, view: RequestView, grant: FetchGrant) -> None:
        self._grant = grant
        exchange.grant = grant
        if grant.max_bytes >= 0:
            lower_max_bytes(view, grant.max_bytes)

    def _withhold(self, fetch: WaitingFetch, grant: FetchGrant, now: float) -> None:
        """Forward a fetch to keep its session in step with the broker, without delivering the response."""
        self._grant = grant
        fetch.exchange.grant = grant
        fetch.exchange.withheld = True
        self._count_wait(fetch, grant, now)
        lower_max_bytes(fetch.view, 1)
        lower_max_wait(fetch.view, 0)

    def _forward_acknowledgements(self, fetch: WaitingFetch, grant: FetchGrant, now: float) -> None:
        """Forward a ShareFetch without a grant; its next one has the same place in the queues."""
        self._grant = grant
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
        self._grant = grant
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
        if fetch is None:
            return None
        self._fetch = None
        return fetch if self._forwards(fetch, UNASKED, now) else None

    def give_up(self, now: float) -> WaitingFetch | None:
        """End the wait of the waiting fetch; return it if it is forwarded."""
        fetch = self._fetch
        if fetch is None:
            return None
        self._fetch = None
        grant = fetch.grant
        if grant is not None and not grant.granted:
            if fetch.answerable:
                self._answer(fetch, grant, now)
                return None
            if fetch.view.api_key == FETCH:
                self._withhold(fetch, grant, now)
            return fetch
        if fetch.gated is None:
            return fetch
        if self._fetches is not None:
            self._fetches.give_up(fetch.gated, now)
            self._respond(fetch.gated, now)
        return None

    def end(self) -> None:
        """Give up the places in queues, and have reservations charged, because the connection is over."""
        if self._fetch is not None and self._fetch.grant is not None:
            self._fetch.grant.end()
        for grant in self._earlier:
            grant.abandon()
        if self._grant is not None:
            self._grant.abandon()
        if self._fetches is not None:
            self._fetches.end()


def _too_large(frame: Frame) -> Malformed:
    return Malformed(
        f"a fetch has {frame.size} bytes; the proxy takes {MAX_BUFFERED_FRAME_BYTES} at most while a quota "
        f"limits consumers"
    )
