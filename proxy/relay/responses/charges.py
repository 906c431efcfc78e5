"""ResponseCharges: charges the responses of a connection, and announces the wait in them."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.verdict import Verdict
from proxy.relay.budgets.id_budget import fill_names
from proxy.relay.budgets.list_turns import ListTurn
from proxy.relay.exchange import Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.service_clock import ServiceClock
from proxy.wire.api_keys import SHARE_FETCH
from proxy.wire.apis.throttle_times import announce
from proxy.wire.edit import LENGTH_SIZE, Edit, i32, insert
from proxy.wire.reader import Reader
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import RequestView, ResponseView


@final
class ResponseCharges:
    """The charges for the responses of one connection. Times are the relay's `now`."""

    def __init__(
        self, engine: QuotaEngine, in_flight: InFlight, names: TopicNames, clock: ServiceClock
    ) -> None:
        self.responded_at = 0.0
        """When the last response had arrived completely, or the broker had connected: from then on it could
        work on a request.
        """
        self.engine: Final = engine
        self.in_flight: Final = in_flight
        self.names: Final = names
        self._clock: Final = clock

    def responded(self, now: float) -> None:
        """Note that a response has arrived completely, or that the broker has connected."""
        self.responded_at = self._clock.at(now)

    def service_seconds(self, exchange: Exchange, now: float) -> float:
        """Return for how long the broker has worked on a request that was sent to it, until `now`."""
        return self._clock.at(now) - self._began(exchange)

    def _began(self, exchange: Exchange) -> float:
        """When the broker began: it works on one request of a connection at a time."""
        return max(exchange.sent_at, self.responded_at)

    def charge(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> float:
        """Charge a response and mute its client; return the time until which it must wait."""
        if exchange.sent_at > 0.0:
            view.began = self._began(exchange)
            view.service_seconds = self._clock.at(now) - view.began
        fill_names(self.names, view.items, exchange.client)
        until = exchange.throttled_until
        verdict = self.engine.charge(request, view, exchange.client, now, until)
        if exchange.list_turn is not None:
            self._charge_list(exchange, exchange.list_turn, verdict, now)
        if request.api_key == SHARE_FETCH:
            self._throttle_share_consumer(exchange, view, verdict, now)
        elif verdict.throttle_seconds > 0.0 and now + verdict.throttle_seconds > until:
            self._throttle(exchange, verdict, now)
        return exchange.throttled_until

    def _charge_list(self, exchange: Exchange, turn: ListTurn, verdict: Verdict, now: float) -> None:
        """Make the next list of the client wait until the request time of this one is paid."""
        owed = self.engine.owed(exchange.client, now)
        if verdict.refill_seconds > 0.0 and owed is not None:
            turn.owe(verdict.refill_seconds, owed.wait(now), now)

    def _throttle(self, exchange: Exchange, verdict: Verdict, now: float) -> None:
        exchange.throttle(now + verdict.throttle_seconds, now)
        self.in_flight.throttle(verdict, exchange.client, now)

    def _throttle_share_consumer(
        self, exchange: Exchange, view: ResponseView, verdict: Verdict, now: float
    ) -> None:
        """Mute the client for the wait, but not while the records that it has got would be unlocked."""
        locks = self.in_flight.record_locks
        if view.lock_ms > 0:
            locks.deliver(view.lock_ms)
        elif verdict.throttle_seconds > locks.longest_wait:
            until = now + locks.longest_wait
            exchange.throttle(until, now)
            self.in_flight.mute(until)
        elif verdict.throttle_seconds > 0.0:
            self._throttle(exchange, verdict, now)

    def charge_unread(
        self, exchange: Exchange, request: RequestView, pieces: list[bytes], view: ResponseView, now: float
    ) -> None:
        """Charge a response of an API that the proxy does not read, and announce the wait in it, if it begins
        with throttle_time_ms. `pieces` are the frame, or its first part.
        """
        until = self.charge(exchange, request, view, now)
        if until > now:
            self._announce(request, pieces, until, now)

    def announce_local(self, exchange: Exchange, response: bytes, now: float) -> bytes:
        """Return the response to an intercepted request, with the wait that has been charged announced."""
        request = exchange.request
        until = exchange.throttled_until
        if request is None or until <= now:
            return response
        pieces = [response]
        self._announce(request, pieces, until, now)
        return b"".join(pieces)

    def _announce(self, request: RequestView, pieces: list[bytes], until: float, now: float) -> None:
        reader = Reader(pieces, LENGTH_SIZE)
        reader.i32()  # correlation_id
        throttle_time_ms = self.in_flight.announced(until, now)
        announce(pieces, reader, request.api_key, request.api_version, throttle_time_ms)

    def charge_time(self, exchange: Exchange, now: float) -> None:
        """Charge only the time of a request to which the broker has responded."""
        began = self._began(exchange)
        self.charge_work(exchange, self._clock.at(now) - began, now, began)

    def charge_work(self, exchange: Exchange, seconds: float, now: float, began: float = 0.0) -> None:
        """Charge work on a request, such as the proxy's own on an intercepted one, as that of the broker, and
        mute the client. `began`: when the broker could begin with it, 0.0 for the proxy's own work.
        """
        request = exchange.request
        if request is None:
            return
        view = ResponseView(request.api_version, False, 0)
        view.service_seconds = seconds
        view.began = began
        verdict = self.engine.charge(request, view, exchange.client, now, exchange.throttled_until)
        if exchange.list_turn is not None:
            self._charge_list(exchange, exchange.list_turn, verdict, now)
        if verdict.throttle_seconds > 0.0:
            self._throttle(exchange, verdict, now)

    def settle(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> None:
        """Charge a response, and announce the wait in it."""
        rewrite = request.fetch_rewrite
        if rewrite is not None:
            rewrite.opened()
            if request.new_session is not None and rewrite.error_code == 0:
                request.new_session.opened(rewrite.client_session(rewrite.session_id))
        size = view.body_size
        until = self.charge(exchange, request, view, now)
        if exchange.grant is not None and not exchange.withheld:
            exchange.grant.settle(size, size, until, now)
        if until <= now:
            return
        if view.throttle_at < 0:
            self.in_flight.delay(self.in_flight.delayed(until, now))
            return
        throttle_time_ms = self.in_flight.announced(until, now)
        if throttle_time_ms > view.throttle_time_ms:
            insert(view.edits, Edit(view.throttle_at, view.throttle_at + 4, i32(throttle_time_ms)))
            view.cursor.marked_edits += 1  # the edit stays when the response is read again from its mark

    def charge_items(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> None:
        """Charge items of a large response whose throttle_time_ms has been sent: the wait begins at once and
        is not announced. A ShareFetch has records to acknowledge, so the next one waits instead.
        """
        fill_names(self.names, view.items, exchange.client)
        until = self.in_flight.muted_until
        verdict = self.engine.charge_items(request, view.items, exchange.client, now, until)
        if verdict.throttle_seconds > 0.0 and request.api_key != SHARE_FETCH:
            self._throttle(exchange, verdict, now)
