"""FetchSessions: the fetches of one connection from which quotas may omit partitions.

The relay manages a session if the full request that opens it names a partition under such a quota. It manages
every session of a follower, because a throttle may be set while the follower fetches. The client's session id
then differs from the broker's. A session with omitted partitions therefore ends with its connection: another
proxy or broker, which would not add the partitions again, does not know the id, and the client opens a new
session.

If a quota is set after a session was opened, the relay rejects the session's next request that names such a
partition (INVALID_FETCH_SESSION_EPOCH), so that the client opens a new one. All other fetches are forwarded
unchanged.
"""

import math
from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.plan import FetchPlan
from proxy.quota.identity import Identity
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.budgets.read_turns import PAUSE_SECONDS
from proxy.relay.exchange import Exchange
from proxy.relay.fetch.consumer_session import ConsumerFetchSession
from proxy.relay.fetch.follower_session import FollowerFetchSession
from proxy.relay.fetch.free_sessions import MAX_SESSIONS, FreeSession, FreeSessions
from proxy.relay.fetch.gated_fetch import ANSWER, FORWARD, WAIT, GatedFetch
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.relay.fetch.plan_turns import ConnectionTurns, PlanTurns
from proxy.relay.fetch.session import FetchSession
from proxy.relay.fetch.session_update import AT_ONCE, SessionUpdate
from proxy.wire.apis.api_01_fetch import after_bounds
from proxy.wire.edit import Edit, i32, replace
from proxy.wire.error_codes import INVALID_FETCH_SESSION_EPOCH
from proxy.wire.fetch.request import (
    FULL_EPOCH,
    NO_BOUND,
    NO_SESSION,
    FetchRequest,
    read_fetch_request,
    replica_id,
)
from proxy.wire.fetch.rewrite import FetchRewrite, Watermarks, fetch_response
from proxy.wire.frames import Frame
from proxy.wire.reader import MAX_LENGTH
from proxy.wire.views import RequestView

SESSION_MASK: Final = 0x35A7C1E9
"""The bits in which a follower's session ids differ from the broker's, which are random numbers. They are
constant, so that the proxy finds the broker's id of a session of an earlier connection and closes the
session, also after a restart. For a consumer's connection, the bits are random and secret.
"""
MAX_PARTITIONS: Final = 10_000
"""Partitions of a consumer's fetch, and of its session. Each costs some microseconds on the event loop, while
all other connections wait; Kafka advises against a broker with more than 4,000 partitions.
"""
LEAST_WAIT_SECONDS: Final = 0.01
"""A fetch that waits asks the quotas at most this often, even if they name shorter waits."""


class SessionRewrite(FetchRewrite):
    """The response to a fetch outside of any session, or of a session that the relay manages."""

    def __init__(self, fetches: "FetchSessions", session: FetchSession, request: FetchRequest) -> None:
        super().__init__(request.version)
        self.watched = session.watched
        self.session_mask = fetches.session_mask
        self._fetches: Final = fetches
        self._session: Final = session
        self._full: Final = request.full

    def marks(self, topic: bytes, partition: int) -> Watermarks | None:
        found = super().marks(topic, partition)
        if found is not None:
            self._session.reported(topic, partition)
        return found

    def opened(self) -> None:
        session = self._session
        if self._full:
            if self.error_code == 0 and self.session_id != NO_SESSION:
                session.broker_id = self.session_id
                session.client_id = self.session_id ^ self.session_mask
                self._fetches.open(session)
        elif self.error_code != 0:
            session.broken = True
        elif self.session_id == NO_SESSION:
            self._fetches.close(session.client_id)

    def withheld(self) -> None:
        if self._full and self.error_code == 0:
            # The next full request closes it.
            self._session.broker_id = self.session_id


@final
class FetchSessions:
    """The fetches and sessions of one connection. Raises Malformed if a request does not parse."""

    def __init__(
        self,
        engine: QuotaEngine,
        names: IdBudget,
        turns: PlanTurns,
        between_brokers: bool = False,
        session_mask: int = SESSION_MASK,
    ) -> None:
        """`session_mask`: the bits in which the client's session ids differ from the broker's."""
        self.session_mask: Final = session_mask
        self._engine: Final = engine
        self._between_brokers: Final = between_brokers
        """Whether a client may be a follower. Any other client with a replica id is a consumer."""
        self._topics: Final = OmittablePartitions(engine, names)
        self._free: Final = FreeSessions(engine, self._topics)
        self._sessions: Final[dict[int, FetchSession]] = {}
        """The sessions by the client's session id."""
        self._last: FetchSession | None = None
        """The partitions of the last full request: clients without sessions send only full requests."""
        self._turns: Final = ConnectionTurns(turns)
        self._update: SessionUpdate | None = None
        """The update that has begun last."""

    @property
    def needed(self) -> bool:
        """Whether the fetches of this connection must be read."""
        return self._between_brokers or self._engine.omits or len(self._sessions) > 0

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower at the client's end, and the number of messages that it lacks."""
        last = self._last
        return (last.replica_id, last.lag()) if isinstance(last, FollowerFetchSession) else None

    def open(self, session: FetchSession) -> None:
        """Add a session that the broker has opened."""
        if session.client_id == NO_SESSION:
            return
        for broken in [client_id for client_id, known in self._sessions.items() if known.broken]:
            del self._sessions[broken]
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[session.client_id] = session

    def end(self) -> None:
        """Give up the places in queues and the turn that is not used, because the connection is over."""
        for session in self._sessions.values():
            session.end()
        if self._last is not None:
            self._last.end()
        self._end_update()
        self._turns.end()

    def _end_update(self) -> None:
        if self._update is not None:
            self._update.end()
            self._update = None

    def close(self, client_id: int) -> FetchSession | None:
        """Remove and return a session that is over, by the client's id; None if it is not one of these."""
        return self._sessions.pop(client_id, None)

    def start(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> GatedFetch | None:
        """Take a request that has been read. Return None if no quota applies to it, and it is to be forwarded
        unchanged.
        """
        self._topics.start(now)
        self._end_update()
        whole = frame.pieces[0] if len(frame.pieces) == 1 else b"".join(frame.pieces)
        at_most = MAX_LENGTH if self._between_brokers else MAX_PARTITIONS
        request = read_fetch_request(whole, after_bounds(view), view.api_version, at_most)
        if self._between_brokers:
            view.replica_id = replica_id(whole, view.min_bytes_at, request)
        fetch = GatedFetch(exchange, view, request, now)
        if request.full:
            if self._start_full(fetch, exchange.client, at_most):
                self._begin_update(fetch, now)
                return fetch
            if request.session_epoch == FULL_EPOCH:
                view.fetch_rewrite = FreeSession(self._free, request)
            return None
        session = self._sessions.get(request.session_id)
        if session is None:
            if not self._engine.omits or self._free.covers(request, view, exchange.client, at_most):
                return None
            # The session was opened before a quota could omit partitions, or on another connection: its
            # partitions are unknown, and quotas may omit some of them.
            fetch.answer = self._rejection(fetch)
        elif (
            session.broken
            or request.session_epoch != session.client_epoch
            or request.version != session.version
        ):
            fetch.answer = self._rejection(fetch)
        else:
            session.advance_client()
            fetch.update = SessionUpdate(session, request, None, [], at_most)
            fetch.session = session
            self._begin_update(fetch, now)
        return fetch

    def _begin_update(self, fetch: GatedFetch, now: float) -> None:
        """Update the session of a request, or begin to: a follower is not kept waiting."""
        update = fetch.update
        if update is None:
            return
        self._update = update
        if update.large and not self._between_brokers:
            self.updated(fetch, now)
        else:
            self._finish_update(fetch)

    def _finish_update(self, fetch: GatedFetch) -> None:
        if fetch.update is not None:
            fetch.update.finish()
            fetch.update = None

    def updated(self, fetch: GatedFetch, now: float) -> bool:
        """Continue to update the session of a large request, which has to wait until `wake_at` afterwards;
        return whether that is done. The connections of a client take turns.
        """
        update = fetch.update
        if update is None:
            return True
        turn_at = self._turns.next_at(fetch.exchange.client, update.size, now)
        if now < turn_at:
            fetch.wake_at = turn_at
            return False
        fetch.wake_at = now + PAUSE_SECONDS
        if update.step():
            fetch.update = None
        return False

    def _rejection(self, fetch: GatedFetch) -> bytes:
        """Respond with the error after which a client opens a new session and loses nothing."""
        view = fetch.view
        return fetch_response(view.api_version, view.correlation_id, error_code=INVALID_FETCH_SESSION_EPOCH)

    def _start_full(self, fetch: GatedFetch, who: Identity, at_most: int) -> bool:
        """Return whether a quota applies to the request."""
        request = fetch.request
        view = fetch.view
        before = self.close(request.session_id)
        self._free.close(request.session_id)
        last = self._last
        self._last = None
        follower = view.replica_id >= 0
        if before is None and not follower and not self._topics.concern(request, view, who):
            return False
        session = self._new_session(who, request.version, view.replica_id)
        known = last if last is not None and last.version == request.version else None
        fetch.update = SessionUpdate(
            session,
            request,
            known if before is None else before,
            [earlier for earlier in (before, last) if earlier is not None],
            at_most,
        )
        if before is not None:
            session.broker_id = before.broker_id
        elif last is not None and last.client_id == NO_SESSION and last.broker_id != NO_SESSION:
            # The broker has not got the request that closed the session, because no partition of it was left.
            session.broker_id = last.broker_id
        elif follower and request.session_id != NO_SESSION:
            # A session of an earlier connection, or of an earlier proxy: the relay manages all sessions of a
            # follower.
            session.broker_id = request.session_id ^ SESSION_MASK
        fetch.session = session
        self._last = session
        return True

    def _new_session(self, who: Identity, version: int, replica_id: int) -> FetchSession:
        if replica_id < 0:
            return ConsumerFetchSession(self._engine, self._topics, who, version, replica_id)
        return FollowerFetchSession(self._engine, self._topics, who, version, replica_id)

    def go_on(self, fetch: GatedFetch, now: float) -> int:
        """Decide what happens to a request: FORWARD, WAIT or ANSWER."""
        session = fetch.session
        if session is None:
            return ANSWER
        # A follower never waits: its topic is not throttled until the name is known.
        consumer = session if isinstance(session, ConsumerFetchSession) else None
        plan = fetch.plan
        if plan is None:
            if consumer is not None and self._plans_later(fetch, consumer, now):
                return WAIT
            plan = session.plan(now, fetch.answer_at)
            self._turns.planned(0 if consumer is None else consumer.planned, now)
            if consumer is not None and consumer.planned > AT_ONCE:
                fetch.plan = plan
                fetch.wake_at = now + PAUSE_SECONDS
                return WAIT
        fetch.plan = None
        rewrite = SessionRewrite(self, session, fetch.request)
        full = fetch.request.full
        topics: bytes | None = None
        if full:
            topics = session.full(rewrite)
        elif not session.nothing_left(plan):
            topics = session.incremental()
        if topics is not None:
            self._edit(fetch, session, plan, topics, now)
            fetch.view.fetch_rewrite = rewrite
            return FORWARD
        if now >= fetch.answer_at:
            if consumer is not None and consumer.unknown > 0:
                self._throttle(fetch, plan, now)
            else:
                self.give_up(fetch, now, rewrite)
            return ANSWER
        wake_at = max(plan.ask_again_at, now + LEAST_WAIT_SECONDS, self._turns.pause_until)
        fetch.wake_at = min(wake_at, fetch.answer_at) if plan.ask_again_at > 0.0 else fetch.answer_at
        return WAIT

    def _plans_later(self, fetch: GatedFetch, session: ConsumerFetchSession, now: float) -> bool:
        """Return whether a fetch waits for the names of its topics or for its turn, and note until when. If
        not, its turn is used.
        """
        if now < fetch.names_by and session.awaits_names():
            fetch.wake_at = min(now + LEAST_WAIT_SECONDS, fetch.names_by)
            return True
        turn_at = self._turns.next_at(fetch.exchange.client, session.planned, now)
        if now < turn_at:
            fetch.wake_at = turn_at
            return True
        self._turns.use()
        return False

    def _throttle(self, fetch: GatedFetch, plan: FetchPlan, now: float) -> None:
        """Create an empty response to a full fetch. One of its partitions can neither be fetched nor be in
        the response, because its watermarks are unknown. The client sends the fetch again when the partition
        may be fetched.
        """
        view = fetch.view
        seconds = min(max(plan.ask_again_at - now, LEAST_WAIT_SECONDS), self._engine.max_throttle_seconds)
        fetch.answer = fetch_response(
            view.api_version, view.correlation_id, throttle_time_ms=_milliseconds(seconds)
        )

    def give_up(self, fetch: GatedFetch, now: float, rewrite: FetchRewrite | None = None) -> None:
        """Create the response to a request of which no partition is left: it has nothing new."""
        session = fetch.session
        view = fetch.view
        if session is None:
            return
        self._finish_update(fetch)
        if rewrite is None:
            rewrite = SessionRewrite(self, session, fetch.request)
            if fetch.request.full:
                session.full(rewrite)
        fetch.answer = fetch_response(
            view.api_version,
            view.correlation_id,
            session_id=NO_SESSION if fetch.request.full else session.client_id,
            throttle_time_ms=_milliseconds(
                min(fetch.exchange.throttled_until - now, self._engine.max_throttle_seconds)
            ),
            topics=rewrite.added_topics,
            written=rewrite.added,
        )

    def _edit(
        self, fetch: GatedFetch, session: FetchSession, plan: FetchPlan, topics: bytes, now: float
    ) -> None:
        """Change the request as planned: its session, its topics, and the bounds that concern them."""
        request = fetch.request
        view = fetch.view
        edits = view.edits
        if request.session_at >= 0 and session.broker_id != NO_SESSION:
            epoch = request.session_epoch if request.full else session.next_broker_epoch()
            new = i32(session.broker_id) + i32(epoch)
            replace(edits, Edit(request.session_at, request.session_at + 8, new))
            if request.full:
                # This request closes the session.
                session.broker_id = NO_SESSION
        replace(edits, Edit(request.topics_at, request.topics_end, topics))
        least = NO_BOUND
        for item in plan.bounded:
            if not item.omitted and (least == NO_BOUND or item.bound < least):
                least = item.bound
        if least != NO_BOUND:
            view.bounded = True
            if view.min_bytes > least:
                replace(edits, Edit(view.min_bytes_at, view.min_bytes_at + 4, i32(least)))
        self._shorten_wait(fetch, session, plan, now)

    def _shorten_wait(self, fetch: GatedFetch, session: FetchSession, plan: FetchPlan, now: float) -> None:
        """Lower max_wait_ms, so that the broker responds when an omitted partition may be fetched again, or
        when the client expects the response, or at once if the request is for watermarks.
        """
        view = fetch.view
        probes = isinstance(session, FollowerFetchSession) and session.probes > 0
        until = now if probes else fetch.answer_at
        if plan.omitted and plan.ask_again_at > 0.0:
            until = min(until, max(plan.ask_again_at, now + LEAST_WAIT_SECONDS))
        wait_ms = _milliseconds(until - now)
        if wait_ms < view.max_wait_ms:
            at = view.min_bytes_at - 4
            replace(view.edits, Edit(at, at + 4, i32(wait_ms)))


def _milliseconds(seconds: float) -> int:
    """Return a time in milliseconds, rounded up, apart from errors of doubles; 0 for a negative time."""
    return max(math.ceil(seconds * 1000.0 - 1e-6), 0)
