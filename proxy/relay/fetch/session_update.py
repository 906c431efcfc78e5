"""SessionUpdate: takes the partitions of a large fetch into its session, some in each turn of the loop."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.relay.fetch.session import FetchSession
from proxy.wire.errors import Malformed
from proxy.wire.fetch.request import FetchRequest

AT_ONCE: Final[native] = 1000
"""Partitions that are taken in one turn of the event loop: each costs about two microseconds."""


@final
class SessionUpdate:
    """The update of a session by one request."""

    __slots__ = ("_at_most", "_earlier", "_known", "_request", "_session", "_taken")

    def __init__(
        self,
        session: FetchSession,
        request: FetchRequest,
        known: FetchSession | None,
        earlier: list[FetchSession],
        at_most: int,
    ) -> None:
        """`known` may have watermarks of the same partitions, and places in queues. `earlier`: the sessions
        that end with this one. `at_most`: the partitions that the session may have.
        """
        self._session: Final = session
        self._request: Final = request
        self._known: Final = known
        self._earlier: Final = earlier
        self._at_most: Final = at_most
        self._taken: native = 0

    @property
    def large(self) -> bool:
        """Whether it takes more than one step."""
        return len(self._request.entries) > AT_ONCE

    @property
    def size(self) -> int:
        """The number of partitions that the request names."""
        return len(self._request.entries)

    def step(self) -> bool:
        """Take some partitions; return whether all have been taken. Raises Malformed if the session has too
        many.
        """
        first = self._taken
        until: native = min(first + AT_ONCE, len(self._request.entries))
        self._session.take(self._request, first, until, self._known)
        self._taken = until
        if until < len(self._request.entries):
            return False
        self._session.taken(self._request, self._known)
        self.end()
        if self._session.size > self._at_most:
            raise Malformed(f"a fetch session has more than {self._at_most} partitions")
        return True

    def finish(self) -> None:
        """Take all partitions at once."""
        while not self.step():
            pass

    def end(self) -> None:
        """Give up the places of the earlier sessions in queues."""
        for session in self._earlier:
            session.end()
        self._earlier.clear()
