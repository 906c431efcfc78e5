"""RequestCharges: charges the requests of a connection, and mutes their client."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.verdict import Verdict
from proxy.relay.budgets.id_budget import fill_names
from proxy.relay.exchange import Exchange
from proxy.relay.inflight import InFlight
from proxy.wire.error_codes import NOT_ENOUGH_REPLICAS
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import Item, RequestView, ResponseView


@final
class RequestCharges:
    """The charges for the requests of one connection. Times are the relay's `now`."""

    def __init__(self, engine: QuotaEngine, in_flight: InFlight, names: TopicNames) -> None:
        self._engine: Final = engine
        self._in_flight: Final = in_flight
        self._names: Final = names

    def admit(self, exchange: Exchange, view: RequestView, now: float) -> Verdict:
        """Charge a request that has been read, and mute its client for the wait."""
        fill_names(self._names, view.items, exchange.client)
        verdict = self._engine.admit(view, exchange.client, now)
        if verdict.throttle_seconds > 0.0:
            exchange.throttle(now + verdict.throttle_seconds, now)
            self._in_flight.throttle(verdict, exchange.client, now)
        return verdict

    def give_back_items(self, exchange: Exchange, request: RequestView, now: float) -> None:
        """Take back the charges by topic of a Produce request that the broker has not got whole, or has not
        executed.
        """
        sent = request.sent if request.sent else request.items
        if not sent:
            return
        response = ResponseView(request.api_version, request.flexible, 0, True)
        response.items = [
            Item(item.topic, item.topic_id, item.partition, 0, error_code=NOT_ENOUGH_REPLICAS)
            for item in sent
        ]
        self._engine.charge(request, response, exchange.client, now)

    def charge_items(self, exchange: Exchange, view: RequestView, now: float) -> Verdict:
        """Charge items of a large request that have arrived after it was admitted, and mute its client for
        the wait.
        """
        fill_names(self._names, view.items, exchange.client)
        until = exchange.throttled_until
        verdict = self._engine.charge_items(view, view.items, exchange.client, now, until)
        if verdict.throttle_seconds > 0.0:
            exchange.throttle(now + verdict.throttle_seconds, now)
            self._in_flight.throttle(verdict, exchange.client, now)
        return verdict
