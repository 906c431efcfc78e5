"""churn: connections come and go, and the proxy's memory does not grow.

The garbage collector freezes objects, so a connection that does not break its own reference cycles would
never be freed.
"""

import random
import socket
import struct
import time
from contextlib import suppress
from typing import Final

from bench.soak.process import growth, open_files, resident, settled
from bench.soak.scenario import Outcome, Run, Scenario
from bench.soak.stalls import percentiles
from tests.support.kafka.topics import make_topic
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.requests import api_versions, batch, produce
from tests.support.process.proxy_process import HOST, ProxyProcess
from tests.support.waiting import wait_until

PER_SECOND: Final = 200
"""Connections per second."""
SECONDS: Final = 3600
SHORT_SECONDS: Final = 2
SAMPLE_SECONDS: Final = 0.5
"""The interval of the samples of memory."""
GROWTH_BYTES: Final = 2 << 20
"""The limit for the growth of memory between the second and the last quarter of a run of any length.

A relay with its broker side takes 10 KB, so the check finds a leak of one in three hundred of 60,000
connections.
"""
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER for 0 s: the close of the socket resets the connection."""
LENGTH: Final = 4
"""Bytes of a frame's length."""
TOPIC: Final = "soak-churn"


class Visitor:
    """Connects, sends up to two requests, and disconnects in one of eight ways."""

    def __init__(self, port: int) -> None:
        self.took: Final[list[float]] = []
        self.failed = 0
        self._port: Final = port
        self._api_versions: Final = request_frame(api_versions(), 1, "visitor")
        self._produce: Final = request_frame(produce(TOPIC, batch([b"x" * 100])), 1, "visitor")

    def visit(self, number: int) -> None:
        """Connect and disconnect once, in the way `number` modulo eight."""
        started = time.monotonic()
        try:
            with socket.create_connection((HOST, self._port), timeout=30) as client:
                self._visit(client, number % 8)
        except OSError:
            self.failed += 1
        self.took.append(time.monotonic() - started)

    def _visit(self, client: socket.socket, how: int) -> None:
        """Connect and disconnect in the way `how`, from 0 to 7."""
        if how == 0:
            return  # without a request
        if how == 1:
            # Disconnect in the middle of a request.
            client.sendall(self._api_versions[: len(self._api_versions) // 2])
            return
        client.sendall(self._api_versions)
        if how == 2:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)  # before the response
            return
        _receive(client)
        if how == 3:
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass
        elif how > 4:
            client.sendall(self._produce)
            if how > 5:  # otherwise before the response
                _receive(client)


def _receive(client: socket.socket) -> None:
    """Read one frame."""
    frame = b""
    while len(frame) < LENGTH or len(frame) < LENGTH + int.from_bytes(frame[:LENGTH], "big"):
        data = client.recv(1 << 16)
        if not data:
            raise ConnectionError("the proxy closed the connection")
        frame += data


def run(run: Run) -> Outcome:
    """Connect and disconnect PER_SECOND times per second."""
    outcome = Outcome()
    make_topic(run.kafka, TOPIC)
    total = run.amount(SECONDS, SHORT_SECONDS) * PER_SECOND
    with ProxyProcess(run.folder / "churn", run.kafka.bootstrap) as proxy:
        pid = proxy.process.pid
        visitor = Visitor(proxy.broker_port(1))
        files = open_files(pid)
        samples: list[int] = []
        started = time.monotonic()
        for number in range(total):
            time.sleep(max(started + number / PER_SECOND - time.monotonic(), 0.0))
            visitor.visit(random.randrange(8))
            if number % round(PER_SECOND * SAMPLE_SECONDS) == 0:
                samples.append(resident(pid))
        seconds = time.monotonic() - started
        left = settled(pid, files)
        with suppress(AssertionError):
            wait_until(lambda: not proxy.metric("quota_proxy_connections"), "the last connection's end")
        open_ones = proxy.metric("quota_proxy_connections")
    grown = growth(samples)
    outcome.figures = {
        "connections": total,
        "per_second": round(total / seconds, 1),
        "visit_seconds": percentiles(visitor.took, digits=5),
        "resident_mib": [round(each / (1 << 20), 2) for each in samples[:: max(len(samples) // 20, 1)]],
        "growth_mib": round(grown / (1 << 20), 3),
    }
    outcome.check(not visitor.failed, f"{visitor.failed} of {total} connections failed")
    outcome.check(not left, f"{left} descriptors are left")
    outcome.check(not open_ones, f"{open_ones:.0f} connections are left")
    if not run.short:
        outcome.check(grown <= GROWTH_BYTES, f"memory grew by {grown:.0f} bytes")
    return outcome


SCENARIO: Final = Scenario("churn", "200 connections a second come and go for an hour", run)
