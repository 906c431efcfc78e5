"""The attacker: a process that sends a flood until it is killed."""

import asyncio
import multiprocessing
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from typing import TYPE_CHECKING, Final

from bench.attacks.catalogue import ATTACKS, Flood, Target

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

HOST: Final = "127.0.0.1"
READ_BYTES: Final = 1 << 20
RECONNECT_SECONDS: Final = 0.05
SIZE: Final = 4


class Done:
    """What the flood has caused, shared with the process that measures."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.responses: Synchronized[int] = context.Value("q", 0)
        self.ends: Synchronized[int] = context.Value("q", 0)
        """Connections that the other side has ended."""

    def count(self, which: "Synchronized[int]") -> None:
        with which.get_lock():
            which.value += 1


async def send(target: Target, flood: Flood, done: Done) -> None:
    """Send a flood on one connection after another, until cancelled."""
    context = _trusting()
    while True:
        with suppress(OSError, EOFError):
            if flood.tls_handshakes:
                await _shake_hands(target, context, done)
            else:
                await _send_on_one(target, flood, done)
        if not flood.tls_handshakes:
            done.count(done.ends)
            await asyncio.sleep(RECONNECT_SECONDS)


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _shake_hands(target: Target, context: ssl.SSLContext, done: Done) -> None:
    _, writer = await asyncio.open_connection(HOST, target.tls_port, ssl=context)
    done.count(done.responses)
    writer.transport.abort()


async def _send_on_one(target: Target, flood: Flood, done: Done) -> None:
    reader, writer = await asyncio.open_connection(HOST, target.port, limit=READ_BYTES)
    free = asyncio.Semaphore(flood.in_flight)

    async def read() -> None:
        while True:
            size = int.from_bytes(await reader.readexactly(SIZE), "big")
            while size > 0:
                size -= len(await reader.readexactly(min(size, READ_BYTES)))
            free.release()
            done.count(done.responses)

    async def write() -> None:
        for request in cycle(flood.requests):
            await free.acquire()
            writer.write(request)
            await writer.drain()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            group.create_task(write())
    except* (OSError, EOFError):
        pass
    finally:
        writer.transport.abort()


def attack(name: str, target: Target, done: Done) -> None:
    """Run an attack until killed."""
    flood = ATTACKS[name](target)

    async def every() -> None:
        await asyncio.gather(*[send(target, flood, done) for _ in range(flood.connections)])

    asyncio.run(every())


@contextmanager
def attacking(name: str, target: Target) -> Iterator[Done]:
    """Run an attack in a process of its own while the block runs."""
    done = Done()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=attack, args=(name, target, done), daemon=True)
    process.start()
    try:
        yield done
    finally:
        process.kill()
        process.join()
