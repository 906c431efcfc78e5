import socket
import threading
import time

import pytest

from bench.attacks.neighbour import (
    EVERY_SECONDS,
    TIMEOUT_SECONDS,
    Latencies,
    Neighbour,
    latencies,
    measure_all,
)
from tests.support.waiting import wait_until
from tests.unit.bench.attacks.conftest import produced


def test_the_neighbour_measures(broker: int) -> None:
    with Neighbour(broker, "topic") as neighbour:
        started = time.perf_counter()
        found = neighbour.measure(0.1)
        passed = time.perf_counter() - started
        assert 1 <= len(found) <= passed / EVERY_SECONDS + 1
        assert all(seconds > 0.0 for seconds in found)
        # A busy machine may pause for as long as a measurement.
        wait_until(lambda: len(neighbour.measure(0.1)) > 1, "more than one batch")


def test_neighbours_measure_at_the_same_time() -> None:
    """The broker responds when it has the batches of both. Each sends one, although no time is left."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        Neighbour(listening.getsockname()[1], "topic") as one,
        Neighbour(listening.getsockname()[1], "topic") as other,
    ):
        clients = [listening.accept()[0] for _ in range(2)]

        def respond() -> None:
            for client in clients:
                client.recv(4096)
            for client in clients:
                client.sendall(produced())

        threading.Thread(target=respond, daemon=True).start()
        found = measure_all([one, other], 0.0)
        assert [len(each) for each in found] == [1, 1]
        assert max(found[0] + found[1]) < TIMEOUT_SECONDS
        for client in clients:
            client.close()


def test_a_batch_that_is_not_written() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        Neighbour(listening.getsockname()[1], "topic") as neighbour,
    ):
        client, _ = listening.accept()
        client.sendall(produced(2))
        with pytest.raises(RuntimeError, match="error 2"):
            neighbour.produce()
        client.close()


def test_a_batch_is_sent_again_while_its_partition_has_no_leader() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        Neighbour(listening.getsockname()[1], "topic") as neighbour,
    ):
        client, _ = listening.accept()
        client.sendall(produced(6) + produced(6) + produced(0))
        neighbour.produce()
        client.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionError):
            neighbour.produce()
        client.close()


def test_latencies() -> None:
    found = latencies([0.001] * 99 + [0.5])
    assert found == Latencies(100, 1.0, found.p99, 500.0)
    assert found.p99 == pytest.approx(5.99)


def test_latencies_of_a_single_batch() -> None:
    """A batch without a response fills a phase."""
    assert latencies([10.0]) == Latencies(1, 10_000.0, 10_000.0, 10_000.0)


def test_a_lost_connection_is_replaced() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        Neighbour(listening.getsockname()[1], "topic") as neighbour,
    ):
        client, _ = listening.accept()
        client.close()
        assert len(neighbour.measure(0.0)) == 1
        listening.settimeout(10)
        client, _ = listening.accept()
        client.close()
