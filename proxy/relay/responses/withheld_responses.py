"""WithheldResponses: a consumer over its quota gets a Fetch or ShareFetch response without records."""

from typing import Final, final

from proxy.quota.fetch.grant import FetchGrant
from proxy.relay.budgets.id_budget import fill_names
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange
from proxy.relay.fetch.throttling import throttle_fetch
from proxy.relay.responses.charges import ResponseCharges
from proxy.wire.addresses import Unchanged
from proxy.wire.api_keys import FETCH, SHARE_FETCH
from proxy.wire.apis.api_01_fetch import Fetch
from proxy.wire.apis.emptied_share_fetch import empty_response, removals
from proxy.wire.edit import LENGTH_SIZE, Edit, apply, i32, with_length
from proxy.wire.fetch.request import NO_SESSION
from proxy.wire.fetch.rewrite import fetch_response, read_response_session
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import WITHHELD, RequestView, ResponseView

SMALL_BYTES: Final = 512
"""A Fetch response of at most this size may have only errors and watermarks; then it is not withheld."""
_FETCH: Final = Fetch()
_ADDRESSES: Final = Unchanged()


@final
class WithheldResponses:
    """Replaces responses of one connection. Made for each use: idle connections stay small."""

    __slots__ = ("_charges", "_in_flight", "_traffic")

    def __init__(self, traffic: Traffic, charges: ResponseCharges) -> None:
        self._traffic: Final = traffic
        self._charges: Final = charges
        self._in_flight: Final = charges.in_flight

    def withhold(
        self, frame: Frame, exchange: Exchange, request: RequestView, view: ResponseView, now: float
    ) -> bool:
        """If the buckets of its quotas owe too much, send the client a response without records instead of
        this one, whose start has arrived. Return whether that was necessary.
        """
        grant = exchange.grant
        if grant is None or (request.api_key != FETCH and request.api_key != SHARE_FETCH):
            return False
        if grant.watched:  # the quotas look at the items
            fill_names(self._charges.names, view.items, exchange.client)
        engine = self._charges.engine
        if not exchange.withheld and not engine.withholds(request, view, exchange.client, grant, now):
            return False
        if request.api_key == SHARE_FETCH:
            return self._withhold_acquired(frame, exchange, grant, request, view, now)
        if view.body_size <= SMALL_BYTES and not _has_records(frame, request, view):
            return False
        session_id = read_response_session(frame.pieces, view.throttle_at, request.api_version)
        if session_id < 0:
            return False
        rewrite = request.fetch_rewrite
        if exchange.full_fetch:
            session_id = NO_SESSION
            if rewrite is not None:
                rewrite.withheld()
        elif rewrite is not None:
            session_id = rewrite.client_session(session_id)
        until = self._throttle(frame, exchange, grant, request, view, now)
        if request.api_version == 0:
            self._in_flight.delay(until)
        response = fetch_response(
            request.api_version,
            exchange.correlation_id,
            session_id=session_id,
            throttle_time_ms=self._in_flight.announced(until, now),
        )
        self._send([response], len(response), exchange)
        return True

    def _withhold_acquired(
        self,
        frame: Frame,
        exchange: Exchange,
        grant: FetchGrant,
        request: RequestView,
        view: ResponseView,
        now: float,
    ) -> bool:
        """Withhold the records of a ShareFetch. Its acknowledgements have taken effect, so their results are
        kept, unless the response is so large that it is cut through.
        """
        at = view.throttle_at
        edits: list[Edit] = []
        if frame.complete:
            edits = removals(frame.pieces, at, request.api_version)
            if not edits:
                return False
        throttle_time_ms = view.throttle_time_ms
        until = self._throttle(frame, exchange, grant, request, view, now)
        throttle_time_ms = max(throttle_time_ms, self._in_flight.announced(until, now))
        if frame.complete:
            every = [Edit(at, at + 4, i32(throttle_time_ms)), *edits, *view.edits]
            pieces = apply(frame.pieces, with_length(every, frame.size - LENGTH_SIZE))
        else:
            pieces = [empty_response(frame.pieces, at, request.api_version, throttle_time_ms)]
        self._send(pieces, sum([len(piece) for piece in pieces]), exchange)
        return True

    def _throttle(
        self,
        frame: Frame,
        exchange: Exchange,
        grant: FetchGrant,
        request: RequestView,
        view: ResponseView,
        now: float,
    ) -> float:
        """Charge only the quotas of requests, and mute the client; return until when."""
        client = exchange.client
        client.traffic.bytes_out -= frame.size
        size = view.body_size
        view.body_size = WITHHELD
        view.lock_ms = 0
        view.items = []
        exchange.throttled_until = self._charges.charge(exchange, request, view, now)
        if not exchange.withheld:
            grant.settle(size, 0, now, now)
        engine = self._charges.engine
        until = throttle_fetch(exchange, grant, engine, self._in_flight, now)
        engine.count_wait(request, client, grant, until - now, until)
        return until

    def _send(self, pieces: list[bytes], size: int, exchange: Exchange) -> None:
        client = exchange.client
        self._in_flight.count_throttle(exchange)
        self._traffic.total.bytes_out += size
        client.traffic.bytes_out += size
        if client.usage is not None:
            client.usage.count_out(exchange.api_key, size)
        self._in_flight.send(pieces)


def _has_records(frame: Frame, request: RequestView, view: ResponseView) -> bool:
    """Whether a small Fetch response, which is complete, has records. The quotas may not need its items, so
    it is read again.
    """
    asked = RequestView(
        FETCH,
        request.api_version,
        request.correlation_id,
        "",
        request.size,
        flexible=request.flexible,
        want_items=True,
    )
    again = ResponseView(request.api_version, request.flexible, view.body_size, True)
    _FETCH.read_response(Reader(frame.pieces, frame.size - view.body_size), asked, again, _ADDRESSES)
    return any(item.size > 0 for item in again.items)
