import socket

import pytest

from bench.attacks.neighbour import Latencies, Neighbour, latencies
from tests.unit.bench.attacks.conftest import produced


def test_the_neighbour_measures(broker: int) -> None:
    with Neighbour(broker, "topic") as neighbour:
        found = neighbour.measure(0.1)
    assert 2 <= len(found) <= 30
    assert all(seconds > 0.0 for seconds in found)


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
        assert len(neighbour.measure(0.001)) == 1
        listening.settimeout(10)
        client, _ = listening.accept()
        client.close()
