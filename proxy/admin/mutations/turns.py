"""MutationTurns: requests that a controller mutation quota cannot reject wait for their turn.

Such a request goes on when the tokens are not below zero. Those of one quota go on one after the other:
otherwise all that wait would go on together.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from proxy.quota.identity import Identity
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.measure.bucket import Bucket

LONGEST_SLEEP: Final = 1.0
"""The most seconds until a waiting request checks the limit again, which may have been raised or removed."""


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
    async def turn(self, bucket: Bucket, who: Identity) -> AsyncIterator[None]:
        """Wait for the other requests that share the bucket, and then for its tokens."""
        line = self._lines.setdefault(bucket, _Line())
        line.length += 1
        try:
            async with line.lock:
                await self.wait(who)
                yield
        finally:
            line.length -= 1
            if line.length == 0:
                del self._lines[bucket]

    async def wait(self, who: Identity) -> None:
        """Wait until the tokens are not below zero."""
        while True:
            bucket = self._quota.bucket(who, self._time())
            seconds = 0.0 if bucket is None or bucket.observed else bucket.wait(self._time())
            if seconds <= 0.0:
                return
            await self._sleep(min(max(seconds, 0.001), LONGEST_SLEEP))


class _Line:
    """The requests with one quota, of which one goes on at a time."""

    def __init__(self) -> None:
        self.lock: Final = asyncio.Lock()
        self.length = 0
