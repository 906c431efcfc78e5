"""FetchGrants: the grants of one connection's fetches, of which several may be in flight at once."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.grant import FetchGrant, small
from proxy.relay.exchange import Client
from proxy.wire.views import RequestView

BESIDE_AT_MOST: Final = 7
"""The most fetches that a connection has in flight beside the last one, if quotas limit them."""

NO_GRANTS: Final[list[FetchGrant]] = []
"""A shared object that never changes."""


@final
class FetchGrants:
    """The grants of one connection. Each serves one fetch after the other.

    While fetches are in flight, the next one is forwarded only if there are tokens for all of them. Otherwise
    it waits until their responses have arrived. A client loses little by that: a broker, too, processes a
    fetch only when it has responded to the last.

    Invariant: a broker responds in order, so those in flight are the last of `_earlier`, and then `_last`. If
    `_last` is not in flight, none is.
    """

    def __init__(self, engine: QuotaEngine) -> None:
        self._engine: Final = engine
        self._last: FetchGrant | None = None
        """The grant of the last fetch that quotas could limit."""
        self._earlier = NO_GRANTS
        """The grants of the fetches before it, in their order."""
        self._used_beside = False
        """Whether a fetch has been beside others since the last one that was not."""

    @property
    def in_flight(self) -> bool:
        """Whether a fetch that has been granted awaits its response."""
        last = self._last
        return last is not None and last.granted

    def begin(self, view: RequestView, client: Client, now: float) -> FetchGrant | None:
        """Return the grant of a fetch, to be asked, while none is in flight; None if no quota limits it."""
        if self._earlier:
            for grant in self._earlier:
                grant.end()
            if not self._used_beside:
                self._earlier.clear()
            self._used_beside = False
        last = self._last
        if last is None:
            last = self._last = FetchGrant()
        return last if self._engine.limit_fetch(view, client, last, now) else None

    def beside(self, view: RequestView, client: Client, now: float) -> FetchGrant | None:
        """Grant a fetch while others are in flight, and return its grant; None if it might have to wait for
        tokens.
        """
        last = self._last
        earlier = self._earlier
        if last is None or not self._engine.limits_fetches:
            return None
        free = earlier[0] if earlier and not earlier[0].granted else None
        if free is None and len(earlier) >= BESIDE_AT_MOST:
            return None
        if not small(last.size if free is None else free.size):
            return None
        grant = FetchGrant(last.size) if free is None else free
        if not self._engine.limit_fetch(view, client, grant, now):
            return None
        others = 1
        for each in earlier:
            if each.granted:
                others += 1
        if not grant.ask_beside(others, view.max_bytes, now):
            return None
        if free is not None:
            del earlier[0]
        if earlier:
            earlier.append(last)
        else:
            self._earlier = [last]
        self._last = grant
        self._used_beside = True
        return grant

    def end(self) -> None:
        """Give up the places in queues, and have reservations charged, because the connection is over."""
        for grant in self._earlier:
            grant.end()
            grant.places.leave()
        if self._last is not None:
            self._last.end()
            self._last.places.leave()
