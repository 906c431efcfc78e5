"""The neighbour: a client that produces small batches, and measures how long each takes."""

import socket
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Self

from bench.attacks import frames
from bench.load.frames import record_batch

HOST: Final = "127.0.0.1"
BATCH_BYTES: Final = 200
EVERY_SECONDS: Final = 0.005
"""Between the starts of two batches."""
TIMEOUT_SECONDS: Final = 10.0
SIZE: Final = 4
NOT_LEADER_OR_FOLLOWER: Final = 6
"""An attack may delay a broker's heartbeats: the broker is then fenced, and leads nothing until the
next one.
"""
RETRY_SECONDS: Final = 0.01
"""The pause before a batch is sent again to a partition without a leader."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """The latencies of the neighbour, in milliseconds."""

    count: int
    median: float
    p99: float
    longest: float


def latencies(seconds: list[float]) -> Latencies:
    """Sum up measurements in seconds, of which there is at least one: a single batch may take longer than a
    phase.
    """
    milliseconds = [each * 1000 for each in seconds]
    p99 = milliseconds[0]
    if len(milliseconds) > 1:
        p99 = statistics.quantiles(milliseconds, n=100, method="inclusive")[-1]
    return Latencies(len(milliseconds), statistics.median(milliseconds), p99, max(milliseconds))


class Neighbour:
    """A connection that is opened again when it is lost."""

    def __init__(self, port: int, topic: str, batch_bytes: int = BATCH_BYTES) -> None:
        self._request: Final = frames.produce(topic, 0, record_batch(batch_bytes), "neighbour")
        self._port: Final = port
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection((HOST, self._port), timeout=TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._responses = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        self._responses.close()
        self._socket.close()

    def produce(self) -> None:
        """Produce a batch; try again while its partition has no leader.

        Raises ConnectionError if the connection ends, TimeoutError if there is no response, RuntimeError if
        the batch is not written.
        """
        while (error := self._send()) == NOT_LEADER_OR_FOLLOWER:
            time.sleep(RETRY_SECONDS)
        if error:
            raise RuntimeError(f"the neighbour's batch is not written: error {error}")

    def _send(self) -> int:
        """Send the request; return the error code of its partition."""
        self._socket.sendall(self._request)
        size = int.from_bytes(self._responses.read(SIZE), "big")
        response = self._responses.read(size)
        if not response:
            raise ConnectionError("the neighbour's connection has ended")
        # correlation_id, one topic with its name, one partition with its index, error_code
        at = 8 + 2 + int.from_bytes(response[8:10], "big") + 8
        return int.from_bytes(response[at : at + 2], "big", signed=True)

    def measure(self, seconds: float) -> list[float]:
        """Produce a batch every EVERY_SECONDS for so long, or as soon as the last one is written; return how
        long each took, in seconds. There is at least one, although the machine may pause for so long. A batch
        without a response takes TIMEOUT_SECONDS, on a connection that is lost then. Raises OSError if there
        is no new one.
        """
        found: list[float] = []
        end = time.perf_counter() + seconds
        while (started := time.perf_counter()) < end or not found:
            try:
                self.produce()
            except (TimeoutError, ConnectionError):
                self._close()
                self._connect()
            took = time.perf_counter() - started
            found.append(took)
            time.sleep(max(EVERY_SECONDS - took, 0.0))
        return found


def measure_all(neighbours: Sequence[Neighbour], seconds: float) -> list[list[float]]:
    """Have several neighbours measure at the same time; return what each found."""
    with ThreadPoolExecutor(len(neighbours)) as threads:
        return list(threads.map(lambda each: each.measure(seconds), neighbours))
