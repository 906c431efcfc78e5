"""WorkerProcess: questions to a worker, over a real channel. test_supervisor.py runs real processes."""

import asyncio
import signal
import socket
from typing import Any

from proxy.server.workers.channel import Appended, Ask, Channel, LastMetrics, Record, WorkerReply
from proxy.server.workers.process import WorkerProcess


class Ended:
    """A process that has ended; a mock, because only its exit code is used."""

    pid = 7

    async def wait(self) -> int:
        return -9

    def send_signal(self, number: int) -> None:
        raise ProcessLookupError


class Pair:
    """The supervisor's side of a worker, and the worker's end of the channel."""

    async def __aenter__(self) -> "Pair":
        end, far = socket.socketpair()
        self.closed: list[bool] = []
        self.worker = await Channel.over(far)
        process: Any = Ended()
        self.process = WorkerProcess(1, process, await Channel.over(end), lambda: self.closed.append(True), 0)
        self.appended: list[bytes] = []
        self.last: list[bytes] = []
        self.following = asyncio.ensure_future(self.process.follow(self.appended.append, self.last.append))
        return self

    async def __aexit__(self, *error: object) -> None:
        self.worker.close()
        await self.following
        assert self.closed == [True]
        for _ in range(5):
            await asyncio.sleep(0)  # let the loop close what is closing


async def test_each_reply_finds_its_question() -> None:
    async with Pair() as pair:
        asking = [asyncio.ensure_future(pair.process.ask(what)) for what in ("metrics", "quotas")]
        asked = [await pair.worker.receive() for _ in asking]
        for ask in reversed(asked):
            assert isinstance(ask, Ask)
            pair.worker.send(WorkerReply(ask.number, ask.what.encode()))
        assert await asyncio.gather(*asking) == [b"metrics", b"quotas"]
        assert pair.process.replied


async def test_a_worker_that_does_not_reply_in_time_gives_nothing() -> None:
    async with Pair() as pair:
        assert await pair.process.ask("metrics", seconds=0.0) == b""
        assert not pair.process.replied
        pair.worker.send(WorkerReply(1, b"late"))


async def test_what_a_worker_sends_is_handed_on_until_it_has_ended() -> None:
    async with Pair() as pair:
        asking = asyncio.ensure_future(pair.process.ask("metrics", seconds=60.0))
        assert await pair.worker.receive() is not None
        for message in (Appended(b"report"), Record(1, 2, b"ignored"), LastMetrics(b"last")):
            pair.worker.send(message)
        await pair.worker.flush()
        pair.worker.close()
        assert await pair.following == -9
        assert await asking == b""
    assert (pair.appended, pair.last) == ([b"report"], [b"last"])


async def test_a_signal_to_a_process_that_has_ended_is_no_error() -> None:
    async with Pair() as pair:
        pair.process.signal(signal.SIGTERM)
