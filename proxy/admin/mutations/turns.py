"""MutationTurns: requests that a controller mutation quota cannot reject wait for their turn.

Such a request goes on when the tokens are not below zero. Those of one quota go on one after the other:
otherwise all that wait would go on together. A request is dropped if its client closes the connection:
requests may have megabytes, and others would wait behind those of connections that are long gone.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from proxy.quota.identity import Identity
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.measure.bucket import Bucket
from proxy.relay.close_reasons import CLIENT_CLOSED, RelayError

LONGEST_SLEEP: Final = 1.0
"""The most seconds until a waiting request checks whether its client is gone, and the limit again, which may
have been raised or removed.
"""


class MutationTurns:
    """The turns of all clients of a quota."""

    def __init__(
        self,
        quota: ControllerMutation,
        time: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._quota: Final = quota
        self._time: Final = time
        self._sleep: Final = sleep
        self._lines: Final[dict[Bucket, _Line]] = {}

    @asynccontextmanager
    async def turn(self, bucket: Bucket, who: Identity, gone: Callable[[], bool]) -> AsyncIterator[None]:
        """Wait for the other requests that share the bucket, and then for its tokens. `gone`: whether the
        client has closed its connection; then RelayError is raised.
        """
        line = self._lines.setdefault(bucket, _Line())
        try:
            await line.enter(gone)
            try:
                await self.wait(who, gone)
                yield
            finally:
                line.leave()
        finally:
            if line.empty:
                self._lines.pop(bucket, None)

    async def wait(self, who: Identity, gone: Callable[[], bool]) -> None:
        """Wait until the tokens are not below zero. Raises RelayError if the client is gone."""
        while True:
            bucket = self._quota.bucket(who, self._time())
            seconds = 0.0 if bucket is None or bucket.observed else bucket.wait(self._time())
            if seconds <= 0.0:
                return
            check_client(gone)
            await self._sleep(min(max(seconds, 0.001), LONGEST_SLEEP))


def check_client(gone: Callable[[], bool]) -> None:
    """Raise RelayError if a client has closed its connection."""
    if gone():
        raise RelayError(
            CLIENT_CLOSED, "the client closed the connection while its request waited for a quota"
        )


class _Line:
    """The requests with one quota, of which one goes on at a time."""

    def __init__(self) -> None:
        self._busy = False
        """Whether a request goes on."""
        self._waiting: Final[dict[asyncio.Future[None], None]] = {}
        """Set when it is the turn of a request, in their order."""

    @property
    def empty(self) -> bool:
        return not self._busy

    async def enter(self, gone: Callable[[], bool]) -> None:
        """Wait for the earlier requests. Raises RelayError if the client is gone."""
        if not self._busy:
            self._busy = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = None
        try:
            while not turn.done():
                await asyncio.wait([turn], timeout=LONGEST_SLEEP)
                if not turn.done():
                    check_client(gone)
        except BaseException:
            if turn.done():
                self.leave()
            else:
                del self._waiting[turn]
            raise

    def leave(self) -> None:
        """Let the next request go on."""
        for turn in self._waiting:
            del self._waiting[turn]
            turn.set_result(None)
            return
        self._busy = False
