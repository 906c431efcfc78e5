"""WorkerLink: a worker's connection to its supervisor.

It takes the place of the admin port, which the supervisor serves for all workers: it replies to the
supervisor's questions.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from proxy.server.admin_port.sources import AdminSources
from proxy.server.listener.accept.admission import Balance
from proxy.server.listener.served import until_served
from proxy.server.system.garbage_collection import gc_paused
from proxy.server.workers.channel import (
    CONSOLE,
    METRICS,
    READINESS,
    Appended,
    Ask,
    Channel,
    LastMetrics,
    Record,
    WorkerReply,
)
from proxy.server.workers.worker_shares_log import WorkerSharesLog
from proxy.tasks import Tasks
from proxy.telemetry.console import decode_request, encode_reply

PAGES_WAIT_SECONDS: Final = 0.5
"""The longest time for which the import waits until clients are served."""
Pages = Callable[[AdminSources, str], Awaitable[bytes]]


class WorkerLink:
    """The worker's end of the connection; run() serves it."""

    def __init__(self, number: int, end: socket.socket, balance: Balance) -> None:
        """`number` counts the workers from 1; `end` is connected to the supervisor."""
        self.number: Final = number
        self.balance: Final = balance
        self.shares: Final = WorkerSharesLog(self._append)
        """How the workers of this host share limits, if no topic is configured for that."""
        self.orphaned = False
        """Whether the supervisor is gone. Its successor needs the ports at once."""
        self._end: Final = end
        self._channel: Channel | None = None
        self._sources: AdminSources | None = None
        self._page: Pages | None = None
        self._tasks: Final = Tasks()

    async def run(self, stop: Callable[[], None]) -> None:
        """Serve until the supervisor is gone, and then call `stop`."""
        channel = self._channel = await Channel.over(self._end)
        while (message := await channel.receive()) is not None:
            if isinstance(message, Record):
                self.shares.take(message)
            elif isinstance(message, Ask) and message.what == CONSOLE:
                # A change waits for the store, and the supervisor's other questions must not wait for it.
                self._tasks.start(self._reply_later(channel, message))
            elif isinstance(message, Ask):
                channel.send(WorkerReply(message.number, await self._reply(message.what, message.body)))
        self.orphaned = True
        stop()

    async def _reply_later(self, channel: Channel, ask: Ask) -> None:
        channel.send(WorkerReply(ask.number, await self._reply(ask.what, ask.body)))

    def _append(self, value: bytes) -> None:
        if self._channel is not None and not self._channel.full:
            self._channel.send(Appended(value))

    async def _reply(self, what: str, body: bytes) -> bytes:
        """Return the reply to a question; empty if the worker cannot tell yet."""
        sources = self._sources
        if sources is None:
            return b""
        if what == READINESS:
            return readiness_page(sources)
        if what == CONSOLE:
            return encode_reply(await sources.console.reply(decode_request(body)))
        return b"" if self._page is None else await self._page(sources, what)

    async def serve(self, sources: AdminSources) -> None:
        """Reply with what these sources show. Metrics and quotas need a library that takes long to import:
        they come once clients are served, or after PAGES_WAIT_SECONDS.
        """
        self._sources = sources
        await until_served(lambda: not sources.readiness.problems(), PAGES_WAIT_SECONDS)
        # In a thread, so that clients are served meanwhile.
        self._page = await asyncio.to_thread(_imported)

    async def close(self) -> None:
        """Hand over the last counts, and close the connection."""
        await self._tasks.cancel()
        if self._channel is None:
            return
        if self._page is not None and self._sources is not None:
            self._channel.send(LastMetrics(await self._page(self._sources, METRICS)))
            await self._channel.flush()
        self._channel.close()


def readiness_page(sources: AdminSources) -> bytes:
    """What /readyz says of the worker."""
    problems, warnings = sources.readiness.problems(), sources.readiness.warnings()
    return msgspec.json.encode([problems, warnings, sources.certificates.days_left()])


def _imported() -> Pages:
    with gc_paused():
        from proxy.server.workers.pages import page

    return page
