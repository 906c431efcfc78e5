"""ResponseCharges: charges the responses of a connection, and announces the wait in them."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.relay.exchange import Exchange
from proxy.relay.id_budget import IdBudget
from proxy.relay.inflight import InFlight
from proxy.wire.edit import Edit, i32, insert
from proxy.wire.views import RequestView, ResponseView


@final
class ResponseCharges:
    """The charges for the responses of one connection. Times are the relay's `now`."""

    def __init__(self, engine: QuotaEngine, in_flight: InFlight, names: IdBudget) -> None:
        self.responded_at = 0.0
        """When the last response had arrived completely, or the broker had connected: from then on it could
        work on a request.
        """
        self._engine: Final = engine
        self._in_flight: Final = in_flight
        self._names: Final = names

    def charge(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> float:
        """Charge a response and mute its client; return the time until which it must wait."""
        if exchange.sent_at > 0.0:
            # A broker works on one request of a connection at a time.
            view.service_seconds = now - max(exchange.sent_at, self.responded_at)
        self._names.fill(view.items, exchange.client)
        until = exchange.throttled_until
        verdict = self._engine.charge(request, view, exchange.client, now, until)
        if verdict.throttle_seconds > 0.0 and now + verdict.throttle_seconds > until:
            exchange.throttle(now + verdict.throttle_seconds, now)
            self._in_flight.throttle(verdict, exchange.client, now)
        return exchange.throttled_until

    def charge_work(self, exchange: Exchange, seconds: float, now: float) -> None:
        """Charge the proxy's own work on an intercepted request as if the broker had done it, and mute its
        client.
        """
        request = exchange.request
        if request is None:
            return
        view = ResponseView(request.api_version, False, 0)
        view.service_seconds = seconds
        verdict = self._engine.charge(request, view, exchange.client, now, exchange.throttled_until)
        if verdict.throttle_seconds > 0.0:
            self._in_flight.throttle(verdict, exchange.client, now)

    def settle(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> None:
        """Charge a response, and announce the wait in it."""
        if request.fetch_rewrite is not None:
            request.fetch_rewrite.opened()
        size = view.body_size
        until = self.charge(exchange, request, view, now)
        if exchange.grant is not None:
            exchange.grant.settle(size, size, until, now)
        if until <= now:
            return
        if view.throttle_at < 0:
            self._in_flight.delay(self._in_flight.delayed(until, now))
            return
        throttle_time_ms = self._in_flight.announced(until, now)
        if throttle_time_ms > view.throttle_time_ms:
            insert(view.edits, Edit(view.throttle_at, view.throttle_at + 4, i32(throttle_time_ms)))
            view.cursor.marked_edits += 1  # the edit stays when the response is read again from its mark

    def charge_items(self, exchange: Exchange, request: RequestView, view: ResponseView, now: float) -> None:
        """Charge items of a large response whose throttle_time_ms has been sent: the wait begins at once and
        is not announced.
        """
        self._names.fill(view.items, exchange.client)
        until = self._in_flight.muted_until
        verdict = self._engine.charge_items(request, view.items, exchange.client, now, until)
        if verdict.throttle_seconds > 0.0:
            exchange.throttle(now + verdict.throttle_seconds, now)
            self._in_flight.throttle(verdict, exchange.client, now)
