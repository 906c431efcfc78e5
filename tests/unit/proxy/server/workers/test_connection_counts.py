"""Connections are distributed evenly among workers, whichever of them is awake first."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from proxy.server.workers.connection_counts import (
    ITEM,
    ITEM_BYTES,
    NOT_ACCEPTING,
    PLACES_PER_WORKER,
    ConnectionCounts,
    WorkerCount,
)
from proxy.upstream.addresses import join_address
from tests.support.process.metadata_broker import MetadataBroker
from tests.support.process.proxy_process import HOST, ProxyProcess
from tests.support.process.workers import accepted, connecting, started
from tests.support.waiting import wait_until

FEW = 12
CONNECTIONS = 200
IDLE_SECONDS = 600


def worker(counts: ConnectionCounts) -> WorkerCount:
    return WorkerCount(os.dup(counts.descriptor), counts.take())


def test_the_worker_with_fewer_connections_is_first() -> None:
    counts = ConnectionCounts(2)
    one, other = worker(counts), worker(counts)
    assert not one.others_first(5), "the other one accepts nothing yet"
    one.show(5)
    other.show(4)
    assert (one.others_first(5), other.others_first(4)) == (True, False)
    other.show(5)
    assert (one.others_first(5), other.others_first(5)) == (False, False)


def test_workers_with_many_connections_may_differ_a_little() -> None:
    counts = ConnectionCounts(2)
    one, other = worker(counts), worker(counts)
    other.show(160)
    assert (one.others_first(170), one.others_first(171)) == (False, True)


def test_a_worker_that_is_full_or_has_ended_is_not_waited_for() -> None:
    counts = ConnectionCounts(2)
    one, full = worker(counts), worker(counts)
    place = counts.take()
    killed = WorkerCount(os.dup(counts.descriptor), place)
    full.show(1)
    full.full()
    killed.show(1)
    assert one.others_first(5)
    counts.give_back(place)
    assert not one.others_first(5)


def test_a_worker_that_drains_leaves_connections_to_any_other() -> None:
    counts = ConnectionCounts(2)
    draining, other = worker(counts), worker(counts)
    draining.show(0)
    draining.drain()
    draining.show(0)
    assert not draining.others_first(0), "there is no other one"
    assert not other.others_first(9)
    other.show(9)
    assert draining.others_first(0)


def test_a_process_without_a_place_leaves_no_connection_to_others() -> None:
    counts = ConnectionCounts(1)
    places = [counts.take() for _ in range(PLACES_PER_WORKER)]
    assert sorted(places) == list(range(PLACES_PER_WORKER))
    one = worker(counts)
    one.show(5)
    WorkerCount(os.dup(counts.descriptor), places[0]).show(1)
    assert not one.others_first(5)
    counts.give_back(-1)
    assert counts.take() == -1
    counts.give_back(places[0])
    assert counts.take() == places[0]


@contextmanager
def clients(port: int, count: int) -> Iterator[list[socket.socket]]:
    open_ones = [socket.create_connection((HOST, port)) for _ in range(count)]
    try:
        yield open_ones
    finally:
        for one in open_ones:
            one.close()


def is_open(client: socket.socket) -> bool:
    """Whether the proxy has not closed the connection; it sends nothing here."""
    try:
        client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        pass
    return False


@contextmanager
def one_after_the_other(port: int, accepted_ones: Callable[[], int]) -> Iterator[None]:
    with ExitStack() as few:
        for number in range(1, FEW + 1):
            few.enter_context(clients(port, 1))
            wait_until(lambda number=number: accepted_ones() >= number, "a connection")
        yield


def shown(proxy: ProxyProcess) -> list[int]:
    """The counts in the memory that the supervisor shares with the workers."""
    memory = next(
        path
        for path in Path(f"/proc/{proxy.process.pid}/fd").iterdir()
        if "(deleted)" in os.readlink(path) and path.stat().st_size == 2 * PLACES_PER_WORKER * ITEM_BYTES
    )
    return [count for count in memoryview(memory.read_bytes()).cast(ITEM) if count != NOT_ACCEPTING]


def warnings(proxy: ProxyProcess) -> list[str]:
    found: list[str] = json.loads(proxy.get("/readyz")[1])["warnings"]
    return found


def story(proxy: ProxyProcess) -> None:
    proxy.start().wait_ready()
    wait_until(lambda: not warnings(proxy), "both workers")
    first = started(proxy)
    port = proxy.bootstrap_port

    def counts(pids: list[int]) -> list[int]:
        return [accepted(pid, port) for pid in pids]

    with one_after_the_other(port, lambda: sum(counts(first))):
        # On a busy machine, a worker may run too late to take what is left to it.
        assert min(counts(first)) > 0
        wait_until(lambda: sorted(shown(proxy)) == sorted(counts(first)), "the counts of both")
    wait_until(lambda: not sum(counts(first)), "the end of all connections")

    with clients(port, CONNECTIONS) as many:
        with connecting(port) as errors:
            wait_until(lambda: sum(counts(first)) >= CONNECTIONS, "all connections")
            assert min(counts(first)) > 0
            os.kill(first[0], signal.SIGKILL)
            wait_until(lambda: warnings(proxy), "a warning about the killed worker")
            assert proxy.get("/readyz")[0] == 200
            wait_until(lambda: not warnings(proxy), "its successor")
        assert errors == []
        both = [first[1], started(proxy)[-1]]
        left = sum(map(is_open, many))
        wait_until(lambda: sum(counts(both)) == left, "only those that the killed worker did not have")
        with one_after_the_other(port, lambda: sum(counts(both)) - left):
            assert accepted(both[1], port) > 0


async def test_connections_go_to_all_workers_evenly_and_none_is_rejected_while_one_is_replaced(
    tmp_path: Path,
) -> None:
    async with MetadataBroker() as broker:
        # The connections send nothing, and the proxy would close them after handshake_seconds.
        settings = {
            "workers": 2,
            "quotas": {"store": "none"},
            "limits": {"handshake_seconds": IDLE_SECONDS},
        }
        proxy = ProxyProcess(tmp_path, join_address(*broker.address), settings=settings)
        try:
            await asyncio.to_thread(story, proxy)
        finally:
            proxy.kill()
