"""The attacker: a process that sends a flood until it is killed."""

import asyncio
import multiprocessing
import os
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Final

from bench.attacks import frames
from bench.attacks.catalogue import ATTACKS, NOWHERE, Flood, Target

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

HOST: Final = "127.0.0.1"
READ_BYTES: Final = 1 << 20
RECONNECT_SECONDS: Final = 0.05
"""The pause before a new connection, after one that has ended."""
BEGIN_SECONDS: Final = 0.05
"""Until the attacker has begun, it is asked again after this time."""
PAUSE_SECONDS: Final = 0.001
"""The pause after a piece of a request."""
SIZE: Final = 4
"""Bytes of a frame's length, and of throttle_time_ms."""


class Done:
    """What the flood has caused, shared with the process that measures."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.responses: Synchronized[int] = context.Value("q", 0)
        self.ends: Synchronized[int] = context.Value("q", 0)
        """Connections that the other side has ended."""
        self.throttled_ms: Synchronized[int] = context.Value("q", 0)
        """The sum of throttle_time_ms in the responses."""
        self.connections: Synchronized[int] = context.Value("q", 0)
        """Connections that have been opened."""

    def count(self, which: "Synchronized[int]", number: int = 1) -> None:
        with which.get_lock():
            which.value += number


def client_id(name: str) -> str:
    """The attacker's client id. Each attack has its own, and its own quota: it begins without a debt."""
    return f"{frames.CLIENT_ID}-{name}"


def address(name: str) -> str:
    """The attacker's address. On Linux each attack has its own, which is not the neighbour's."""
    return f"127.0.1.{1 + list(ATTACKS).index(name)}" if sys.platform == "linux" else HOST


async def send(target: Target, flood: Flood, done: Done, source: str = HOST) -> None:
    """Send a flood on one connection after another from this address, until cancelled."""
    context = _trusting()
    while True:
        with suppress(OSError, EOFError):
            if flood.tls_handshakes:
                await _shake_hands(target, context, done, source)
            else:
                await _send_on_one(target, flood, done, source)
        if not flood.tls_handshakes:
            done.count(done.ends)
            await asyncio.sleep(RECONNECT_SECONDS)


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _shake_hands(target: Target, context: ssl.SSLContext, done: Done, source: str) -> None:
    port = target.tls_port
    _, writer = await asyncio.open_connection(HOST, port, ssl=context, local_addr=(source, 0))
    done.count(done.connections)
    done.count(done.responses)
    writer.transport.abort()


async def _send_on_one(target: Target, flood: Flood, done: Done, source: str) -> None:
    """Send the flood on one connection until it ends. Raises OSError or EOFError if it cannot be opened."""
    limit = READ_BYTES if flood.reads else 1
    reader, writer = await asyncio.open_connection(HOST, target.port, limit=limit, local_addr=(source, 0))
    done.count(done.connections)
    free = asyncio.Semaphore(flood.in_flight)

    async def read() -> None:
        while flood.reads:
            size = int.from_bytes(await reader.readexactly(SIZE), "big")
            if flood.throttle_at != NOWHERE and size >= flood.throttle_at + SIZE:
                head = await reader.readexactly(flood.throttle_at + SIZE)
                size -= len(head)
                done.count(done.throttled_ms, int.from_bytes(head[-SIZE:], "big"))
            while size > 0:
                size -= len(await reader.readexactly(min(size, READ_BYTES)))
            free.release()
            done.count(done.responses)

    async def write() -> None:
        for request in cycle(flood.requests):
            await free.acquire()
            pieces = [request]
            if flood.piece_bytes:
                cuts = range(0, len(request), flood.piece_bytes)
                pieces = [request[cut : cut + flood.piece_bytes] for cut in cuts]
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                if flood.piece_bytes:
                    await asyncio.sleep(PAUSE_SECONDS)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            group.create_task(write())
    except* (OSError, EOFError):
        pass
    finally:
        writer.transport.abort()


def attack(name: str, target: Target, done: Done, nice: int = 0) -> None:
    """Run an attack until killed."""
    os.nice(nice)
    made = ATTACKS[name](target)
    flood = replace(made, requests=[frames.sent_by(each, client_id(name)) for each in made.requests])

    async def every() -> None:
        sending = [send(target, flood, done, address(name)) for _ in range(flood.connections)]
        await asyncio.gather(*sending)

    asyncio.run(every())


@contextmanager
def attacking(name: str, target: Target, nice: int = 0) -> Iterator[Done]:
    """Run an attack in a process of its own, with this nice value, while the block runs. The block begins
    when the attacker has opened its first connection.

    Raises RuntimeError if the process ends before.
    """
    done = Done()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=attack, args=(name, target, done, nice), daemon=True)
    process.start()
    try:
        attacks = ATTACKS[name](target).connections > 0
        while attacks and not done.connections.value:
            if not process.is_alive():
                raise RuntimeError(f"the process of the attack {name} has ended; its error is above")
            time.sleep(BEGIN_SECONDS)
        yield done
    finally:
        process.kill()
        process.join()
