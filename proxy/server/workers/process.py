"""WorkerProcess: one process of the supervisor, from its start to its end."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from functools import partial
from typing import Final, Self

from proxy.server.workers.channel import Appended, Ask, Channel, LastMetrics, WorkerReply
from proxy.server.workers.ports import KeptPorts
from proxy.server.workers.starts import Child, Started

END_DELAY: Final = signal.SIGINT
"""Ends limits.shutdown_delay_seconds in a worker that has got SIGTERM. Another SIGTERM would be lost if the
worker has not handled the first one yet.
"""
REPLY_SECONDS: Final = 1.0
"""For how long the supervisor waits for a reply: a suspended worker gives none."""


class WorkerProcess:
    """The process of one worker."""

    def __init__(
        self,
        number: int,
        process: Child,
        channel: Channel,
        close: Callable[[], None],
        place: int,
    ) -> None:
        """`close` is called at its end; `place` is that of its count in ConnectionCounts."""
        self.number: Final = number
        self.place: Final = place
        self.problems: list[str] = ["starting"]
        """Why it cannot serve clients, as it said last."""
        self.warnings: list[str] = []
        self.certificates: dict[str, float] = {}
        """Days until each certificate expires."""
        self.how_it_ended = ""
        """How the process has ended; empty while it runs."""
        self.replied = False
        """Whether it has replied to a question: it handles signals then."""
        self.channel: Final = channel
        self._process: Final = process
        self._close_ports: Final = close
        self._asked = 0
        self._waiting: Final[dict[int, asyncio.Future[bytes]]] = {}

    @classmethod
    async def of(cls, started: Started, kept: KeptPorts) -> Self:
        """Serve a process that has started, from now on."""
        kept.attach(started.ports)
        channel = await Channel.over(started.channel)
        return cls(started.number, started.child, channel, partial(kept.detach, started.ports), started.place)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def follow(self, append: Callable[[bytes], None], last: Callable[[bytes], None]) -> int:
        """Take its messages until it has ended; the exit code, negative for a signal.

        append: takes a report for the log. last: takes its last metrics.
        """
        while (message := await self.channel.receive()) is not None:
            if isinstance(message, Appended):
                append(message.value)
            elif isinstance(message, LastMetrics):
                last(message.body)
            elif isinstance(message, WorkerReply):
                future = self._waiting.pop(message.number, None)
                if future is not None and not future.done():
                    future.set_result(message.body)
        code = await self._process.wait()
        self._close()
        return code

    def _close(self) -> None:
        self._close_ports()
        self.channel.close()
        for future in self._waiting.values():
            future.cancel()

    async def ask(self, what: str, body: bytes = b"", seconds: float = REPLY_SECONDS) -> bytes:
        """Ask the worker; return its reply, empty if there is none within `seconds` or it cannot tell yet."""
        if self.channel.full:
            return b""
        self._asked += 1
        number = self._asked
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self.channel.send(Ask(number, what, body))
        await asyncio.wait([future], timeout=seconds)
        self._waiting.pop(number, None)
        if not future.done() or future.cancelled():
            return b""
        self.replied = True
        return future.result()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
