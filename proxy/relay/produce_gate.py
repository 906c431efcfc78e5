"""ProduceGate: partitions of Produce requests that quotas reject are not forwarded.

The rest of the request is, and the client's response has all of its partitions. If every partition is
rejected, the relay answers the request itself, in its turn. A producer with acks=0 gets no responses: its
rejected batches are dropped, and its connection ends soon after, which is how a broker says that something
went wrong.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.relay.exchange import Exchange, local_exchange
from proxy.relay.inflight import InFlight
from proxy.wire.api_keys import PRODUCE
from proxy.wire.client_software import retries_throttling
from proxy.wire.error_codes import TOPIC_AUTHORIZATION_FAILED
from proxy.wire.frames import Frame
from proxy.wire.protected_topics import MESSAGE, ProtectedTopics
from proxy.wire.rejected_partitions import Rejection, cut, local_response
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import Item, RequestView

UNANSWERED_SECONDS: Final = 1.0
"""How long a producer that asks for no responses is left alone before its connection ends."""
REJECTED_MESSAGE: Final = "The quota of this partition is used up for now; send the batch again."


@final
class ProduceGate:
    """For one connection."""

    def __init__(
        self,
        engine: QuotaEngine,
        in_flight: InFlight,
        names: TopicNames,
        protected: ProtectedTopics | None = None,
    ) -> None:
        self._engine: Final = engine
        self._in_flight: Final = in_flight
        self._names: Final = names
        self._protected: Final = protected
        self._retries_throttling = False
        """Whether the client is known to retry THROTTLING_QUOTA_EXCEEDED."""
        self.closing = ""
        """Why the connection ends as soon as its client is no longer muted; empty if it does not."""

    def client_is(self, software: str) -> None:
        """The client has said what library it uses: RequestView.client_software."""
        self._retries_throttling = retries_throttling(software)

    def reject(self, frame: Frame, exchange: Exchange, view: RequestView, body_at: int, now: float) -> bool:
        """Take the partitions out that the quotas reject, and those of protected topics; returns whether none
        is left to go on.

        The frame is whole, its body begins at `body_at`, and the view has the items; with their heads if
        quotas reject.
        """
        self._names.fill(view.items)
        denied = self._deny(view) if view.names_protected else []
        verdict = self._engine.reject(view, exchange.client, now)
        places = sorted({*verdict.items, *denied})
        if not places:
            return False
        if verdict.throttle_seconds > 0.0:
            exchange.throttled_until = now + verdict.throttle_seconds
            self._in_flight.mute(exchange.throttled_until)
        rejected = [view.items[place] for place in places]
        denied_bytes = 0
        for place in denied:
            denied_bytes += view.items[place].size
        if view.acks == 0:
            why = "writes to a topic of the proxy" if denied else "is over a quota"
            self.closing = f"a producer with acks=0 {why}: {len(rejected)} batches were dropped"
            self._in_flight.mute(now + UNANSWERED_SECONDS)
        error_code = self._engine.rejection_error(self._retries_throttling)
        exchange.rejection = Rejection(rejected, error_code, REJECTED_MESSAGE, MESSAGE)
        if len(rejected) < len(view.items):
            gone = frozenset(places)
            view.items = [item for place, item in enumerate(view.items) if place not in gone]
            view.edits.extend(cut(frame.pieces, body_at, view.api_version, view.flexible, places))
            for edit in view.edits:
                view.size += edit.growth
            # As a broker does, charge the producer for what it has sent without the right to.
            view.size += denied_bytes
            return False
        if denied:
            self._charge(exchange, view, now)
        if view.acks != 0:
            self._respond(exchange, view, exchange.rejection, now)
        return True

    def _deny(self, view: RequestView) -> list[int]:
        """Give the items of protected topics their error; return their places."""
        protected = self._protected
        denied: list[int] = []
        if protected is None:
            return denied
        for place, item in enumerate(view.items):
            if protected.has(item.topic, item.topic_id):
                denied.append(place)
                view.items[place] = Item(
                    item.topic,
                    item.topic_id,
                    item.partition,
                    item.size,
                    item.head,
                    TOPIC_AUTHORIZATION_FAILED,
                )
        return denied

    def _charge(self, exchange: Exchange, view: RequestView, now: float) -> None:
        """Charge a request of which nothing is left to go on, without its partitions."""
        view.items = []
        verdict = self._engine.admit(view, exchange.client, now)
        if verdict.throttle_seconds > 0.0:
            exchange.throttled_until = max(exchange.throttled_until, now + verdict.throttle_seconds)
            self._in_flight.throttle(verdict, exchange.client, now)

    def _respond(self, exchange: Exchange, view: RequestView, rejection: Rejection, now: float) -> None:
        """Answer a request that is not forwarded."""
        until = exchange.throttled_until
        response = local_response(view, rejection, self._in_flight.announced(until, now))
        local = local_exchange(exchange.correlation_id, exchange.client, PRODUCE, response)
        if view.api_version == 0:
            local.delayed_until = self._in_flight.delayed(until, now)
        self._in_flight.add(local)
