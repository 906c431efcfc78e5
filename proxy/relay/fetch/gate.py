"""FetchGate: decides what happens to a connection's fetches while quotas may omit partitions from them."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.relay.exchange import Exchange, local_exchange
from proxy.relay.fetch.sessions import ANSWER, WAIT, FetchSessions, GatedFetch
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.relay.inflight import InFlight
from proxy.wire.api_keys import FETCH
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import RequestView


@final
class FetchGate:
    """A fetch from which every partition is omitted waits here; no request behind it is read meanwhile."""

    def __init__(
        self, engine: QuotaEngine, in_flight: InFlight, names: TopicNames, between_brokers: bool = False
    ) -> None:
        self._engine: Final = engine
        self._in_flight: Final = in_flight
        self._names: Final = names
        self._between_brokers: Final = between_brokers
        self._fetches: FetchSessions | None = None
        """None while no quota omits partitions."""
        self._fetch: GatedFetch | None = None
        """The one that waits."""

    @property
    def reads(self) -> bool:
        """Whether fetches have to be read beyond their bounds."""
        return self._engine.omits or self._fetches is not None or self._between_brokers

    @property
    def follower(self) -> tuple[int, int] | None:
        """The node id of the follower that the client is, and how many messages it lacks."""
        return None if self._fetches is None else self._fetches.follower

    @property
    def waiting(self) -> bool:
        """Whether a fetch waits."""
        return self._fetch is not None

    @property
    def wake_at(self) -> float:
        """When wake() is due; 0.0 for never."""
        return 0.0 if self._fetch is None else self._fetch.wake_at

    def forwards(self, frame: Frame, exchange: Exchange, view: RequestView, now: float) -> bool:
        """Whether a fetch is forwarded, with the view's edits. If not, it waits here or has been answered."""
        fetches = self._fetches
        if fetches is None:
            fetches = self._fetches = FetchSessions(self._engine, self._names, self._between_brokers)
        elif not fetches.needed:
            self._fetches = None
            return True
        if view.partial:
            if not self._between_brokers:
                raise Malformed(
                    f"a fetch has {frame.size} bytes; the proxy takes {MAX_BUFFERED_FRAME_BYTES} at most, to "
                    f"omit partitions from it"
                )
            return True
        fetch = fetches.start(frame, exchange, view, now)
        return fetch is None or self._forwards(fetches, fetch, now)

    def _forwards(self, fetches: FetchSessions, fetch: GatedFetch, now: float) -> bool:
        outcome = fetches.go_on(fetch, now)
        if outcome == WAIT:
            self._fetch = fetch
        elif outcome == ANSWER:
            self._respond(fetch, now)
        else:
            return True
        return False

    def _respond(self, fetch: GatedFetch, now: float) -> None:
        asked = fetch.exchange
        exchange = local_exchange(asked.correlation_id, asked.client, FETCH, fetch.answer)
        if fetch.view.api_version == 0:
            exchange.delayed_until = self._in_flight.delayed(asked.throttled_until, now)
        self._in_flight.add(exchange)

    def wake(self, now: float) -> GatedFetch | None:
        """Ask the quotas again for the fetch that waits; returns it if it is forwarded now."""
        fetch = self._fetch
        fetches = self._fetches
        if fetch is None or fetches is None:
            return None
        self._fetch = None
        return fetch if self._forwards(fetches, fetch, now) else None

    def give_up(self, now: float) -> None:
        """Answer the fetch that waits."""
        fetch = self._fetch
        if fetch is not None and self._fetches is not None:
            self._fetch = None
            self._fetches.give_up(fetch, now)
            self._respond(fetch, now)
