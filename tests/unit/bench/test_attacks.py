"""The attacks: what they send, and what is made of the figures; one short run against a fake broker."""

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from bench.attacks import frames
from bench.attacks.__main__ import PROXY, Measured, report
from bench.attacks.attacker import Done, send
from bench.attacks.catalogue import ATTACKS, Target
from bench.attacks.neighbour import Latencies, Neighbour, latencies
from proxy.wire.apis import read_request_header
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import read_frame, request_type

TARGET = Target(0, "topic", bytes(range(16)))


def produced(error_code: int = 0) -> bytes:
    """The response to a batch."""
    partition = struct.pack(">ihqqq", 0, error_code, 0, -1, 0)
    body = struct.pack(">i", 1) + frames.topics("topic", [partition]) + struct.pack(">i", 0)
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("frame", [
    frames.alter_client_quotas(3),
    frames.describe_client_quotas(3),
    frames.fetch("topic", 3),
    frames.metadata(["a", "b"]),
    frames.list_offsets("topic", 3),
    frames.offset_for_leader_epoch("topic", 3),
    frames.delete_records("topic", 3),
    frames.init_producer_id("id"),
    frames.add_partitions_to_txn("id", "topic", 3),
    frames.end_txn("id"),
    frames.share_fetch("group", "AAAAAAAAAAAAAAAAAAAAAQ", 0),
    frames.share_acknowledge("group", "AAAAAAAAAAAAAAAAAAAAAQ", bytes(range(16)), 200),
    frames.produce("topic", 0, b"", "neighbour"),
])  # fmt: skip
def test_frames_are_kafkas(frame: bytes) -> None:
    """kio reads them to their end."""
    header = read_request_header(Reader([frame], 4))
    read_frame(request_type(header.api_key, header.api_version), frame)
    assert len(frame) == 4 + int.from_bytes(frame[:4], "big")


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_makes_requests(name: str) -> None:
    flood = ATTACKS[name](TARGET)
    assert flood.tls_handshakes == (not flood.requests)
    assert ATTACKS[name].__doc__


@pytest.fixture
def broker() -> Iterator[int]:
    """Responds to everything with a produce response."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(client: socket.socket) -> None:
            with client, client.makefile("rb") as requests:
                while size := requests.read(4):
                    requests.read(int.from_bytes(size, "big"))
                    client.sendall(produced())

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


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
        client.sendall(produced(6))
        with pytest.raises(RuntimeError, match="error 6"):
            neighbour.produce()
        client.close()


async def test_a_flood_goes_on_until_cancelled(broker: int) -> None:
    done = Done()
    flood = ATTACKS["end_txn"](TARGET)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await send(Target(broker, "topic", b""), flood, done)
    assert done.responses.value > 5
    assert done.ends.value == 0


def test_latencies() -> None:
    assert latencies([0.001] * 99 + [0.5]) == Latencies(100, 1.0, pytest.approx(5.99), 500.0)


@pytest.mark.parametrize(
    ("p99", "longest", "verdict"),
    [(1.5, 50.0, "met"), (1.6, 20.0, "missed by a"), (1.0, 51.0, "missed by a")],
)
def test_the_target(p99: float, longest: float, verdict: str) -> None:
    calm, attacked = Latencies(10, 0.5, 1.0, 2.0), Latencies(10, 0.5, p99, longest)
    lines = report([Measured("a", PROXY, calm, attacked, 7, 1), Measured("b", "Kafka", calm, attacked, 7, 1)])
    assert lines[2] == f"| a | proxy | 1.0 | {p99:.1f} | {p99:.2f} | {longest:.1f} | 7 | 1 |"
    assert lines[-1].endswith(f": {verdict}")
