"""Fleet: the running workers, and what they show together."""

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

import msgspec

from proxy.server.workers.channel import CONSOLE, QUOTAS, READINESS
from proxy.server.workers.process import WorkerProcess
from proxy.telemetry.console import (
    CHANGE,
    OVERVIEW,
    ConsoleReply,
    ConsoleRequest,
    decode_reply,
    encode_request,
    no_console,
)
from proxy.telemetry.overview import Overview, merged_overview
from proxy.telemetry.quota_rows import Row, merged_rows

DOES_NOT_REPLY: Final = "does not reply"
CONSOLE_SECONDS: Final = 30.0
"""A change waits for the store, which gives up earlier than this."""
FRESH_SECONDS: Final = 0.1
"""A worker whose last reply is younger than this is not asked again."""
_readiness: Final = msgspec.json.Decoder(tuple[list[str], list[str], dict[str, float]])


class Fleet:
    """The workers by number."""

    def __init__(self, count: int) -> None:
        self.count: Final = count
        self.running: Final[dict[int, WorkerProcess]] = {}
        self.others: Final[set[WorkerProcess]] = set()
        """Further processes: successors that are not ready yet, and replaced workers that drain."""
        self.restarts = 0
        """How often a worker was started again."""
        self.ended: Final[dict[int, str]] = {}
        """How each worker ended that does not run."""
        self.stopping = False
        self._asked_at = 0.0

    @property
    def all(self) -> list[WorkerProcess]:
        """All processes, those that are about to start or end included."""
        return [*self.running.values(), *self.others]

    def take_over(self, worker: WorkerProcess) -> WorkerProcess | None:
        """Have a process be the worker of its number; return the one that it replaces, which is to end."""
        replaced = self.running.get(worker.number)
        self.running[worker.number] = worker
        self.others.discard(worker)
        if replaced is not None:
            self.others.add(replaced)
        return replaced

    def ended_process(self, worker: WorkerProcess, how: str) -> None:
        """Remove a process that has ended; `how` says how."""
        self.others.discard(worker)
        if self.running.get(worker.number) is worker:
            del self.running[worker.number]
            self.ended[worker.number] = how

    async def ask_how_they_are(self) -> None:
        """Bring problems() and warnings() up to date."""
        if time.monotonic() - self._asked_at < FRESH_SECONDS:
            return
        await self.ask_readiness(list(self.running.values()))
        self._asked_at = time.monotonic()

    async def ask_readiness(self, workers: list[WorkerProcess]) -> None:
        """Bring the problems and warnings of these workers up to date."""
        for worker, body in zip(workers, await self.ask_all(workers, READINESS), strict=True):
            if body:
                worker.problems, worker.warnings, worker.certificates = _readiness.decode(body)
            elif worker.replied:
                worker.problems = [DOES_NOT_REPLY]

    async def ask_all(self, workers: list[WorkerProcess], what: str, body: bytes = b"") -> list[bytes]:
        """Ask these workers at the same time; return their replies in the same order, empty for none."""
        return await asyncio.gather(*(worker.ask(what, body) for worker in workers))

    async def console(self, request: ConsoleRequest) -> ConsoleReply:
        """The reply of one worker to a request of the console; to the overview, the sum of all."""
        body = encode_request(request)
        ready = [worker for worker in self.running.values() if worker.replied]
        if request.what == OVERVIEW:
            replies = await self.ask_all(ready, CONSOLE, body)
            merged = merged_overview(
                msgspec.json.decode(decode_reply(reply).body) for reply in replies if reply
            )
            return await no_console(request) if merged is None else _ok(merged)
        # One that starts knows neither the quotas of the store nor the cluster.
        for worker in sorted(ready, key=lambda worker: len(worker.problems) > 0):
            reply = await worker.ask(CONSOLE, body, CONSOLE_SECONDS)
            if reply:
                return decode_reply(reply)
            if request.what == CHANGE:
                return ConsoleReply(504, b'{"error": "no response: the quota may have been changed"}')
        return await no_console(request)

    def problems(self) -> list[str]:
        """Why no worker serves clients; empty if one does."""
        problems = ["shutting down"] if self.stopping else []
        if not any(not worker.problems for worker in self.running.values()):
            problems += self.not_serving()
        return problems

    def not_serving(self) -> list[str]:
        """Why not all workers serve clients; empty if they do."""
        found = []
        for number in range(1, self.count + 1):
            worker = self.running.get(number)
            problems = worker.problems if worker else [self.ended.get(number, "starting")]
            found += [f"worker {number}: {problem}" for problem in problems]
        return found

    def warnings(self) -> list[str]:
        """The problems that do not keep clients from being served; once, if all workers say it."""
        return ([] if self.problems() else self.not_serving()) + self._warnings()

    def _warnings(self) -> list[str]:
        by_text: dict[str, list[int]] = {}
        for worker in self.running.values():
            for warning in worker.warnings:
                by_text.setdefault(warning, []).append(worker.number)
        return [_of(numbers, len(self.running), text) for text, numbers in by_text.items()]

    def certificates(self) -> dict[str, float]:
        """Days until each certificate expires."""
        return dict(chain.from_iterable(each.certificates.items() for each in self.running.values()))

    async def quota_rows(self) -> list[Row]:
        """The rows of /api/quotas."""
        pages = await self.ask_all(self.all, QUOTAS)
        return merged_rows(msgspec.json.decode(body) for body in pages if body)

    def each(self, choose: Callable[[WorkerProcess], bool]) -> Iterator[WorkerProcess]:
        """The processes that are chosen."""
        return (worker for worker in self.all if choose(worker))


def _ok(overview: Overview) -> ConsoleReply:
    return ConsoleReply(200, msgspec.json.encode(overview))


def _of(numbers: list[int], count: int, text: str) -> str:
    if len(numbers) == count:
        return text
    return f"worker {', '.join(map(str, sorted(numbers)))}: {text}"
