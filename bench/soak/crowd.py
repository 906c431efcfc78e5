"""Many connections of one client process: `python -m bench.soak.crowd HOST:PORT TOPIC COUNT EVERY`.

Each connection sends ApiVersions, and then a Produce request of one small message every EVERY seconds; 0:
none. Every request is due at a fixed time, and its latency counts from then. The process prints `ready` when
all connections have had their first response, and what it measured as one line of JSON when its input ends.
"""

import heapq
import json
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.soak.limits import raise_open_files
from bench.soak.stalls import percentiles
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.requests import api_versions, batch, produce

ROOT: Final = Path(__file__).parents[2]
READY_SECONDS: Final = 300.0
"""The timeout of the end of a crowd."""
AT_A_TIME: Final = 100
"""The number of connections that are opened before responses are read."""
LENGTH: Final = 4
"""Bytes of a frame's length."""


class Member:
    """One connection with at most one request in flight."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket: Final = socket.create_connection(address, timeout=60)
        self.due = 0.0
        """When the request in flight was due; 0.0 if there is none."""
        self.next_due = 0.0
        self._unread = b""

    def send(self, frame: bytes, due: float) -> None:
        """Send a request."""
        self.due = due
        self.socket.sendall(frame)

    def responded(self) -> bool:
        """Read what has arrived; return whether the response is whole. Raises EOFError if the connection has
        ended.
        """
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError
        self._unread += data
        if len(self._unread) < LENGTH + int.from_bytes(self._unread[:LENGTH], "big"):
            return False
        self._unread = b""
        return True


class Crowd:
    """The connections of this process."""

    def __init__(self, address: tuple[str, int], topic: str, count: int, every: float) -> None:
        self.latencies: Final[list[float]] = []
        self.lost = 0
        """The number of connections that have ended."""
        self._address: Final = address
        self._count: Final = count
        self._every: Final = every
        self._api_versions: Final = request_frame(api_versions(), 1, "crowd")
        self._produce: Final = request_frame(produce(topic, batch([b"x" * 100])), 1, "crowd")
        self._selector: Final = selectors.DefaultSelector()
        self._due: Final[list[tuple[float, int, Member]]] = []

    def connect(self) -> None:
        """Open every connection, and wait for the first response on each."""
        members: list[Member] = []
        while len(members) < self._count:
            some = [Member(self._address) for _ in range(min(AT_A_TIME, self._count - len(members)))]
            for member in some:
                member.send(self._api_versions, time.monotonic())
            for member in some:
                while not member.responded():
                    pass
                member.due = 0.0
                self._selector.register(member.socket, selectors.EVENT_READ, member)
            members += some
        started = time.monotonic()
        if self._every:
            # Evenly over the interval.
            self._due.extend(
                (started + self._every * (1 + place / self._count), place, member)
                for place, member in enumerate(members)
            )

    def serve(self, over: threading.Event) -> None:
        """Send and receive until `over` is set."""
        while not over.is_set():
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                due, place, member = heapq.heappop(self._due)
                member.next_due = due + self._every
                if not member.due:
                    member.send(self._produce, due)
                # Otherwise its response is late, and its latency counts from the time when it was due.
                heapq.heappush(self._due, (member.next_due, place, member))
            wait = min(self._due[0][0] - now, 0.2) if self._due else 0.2
            for key, _ in self._selector.select(max(wait, 0.0)):
                self._read(key.data)

    def _read(self, member: Member) -> None:
        try:
            if member.responded():
                self.latencies.append(time.monotonic() - member.due)
                member.due = 0.0
        except (EOFError, OSError):
            self.lost += 1
            self._selector.unregister(member.socket)
            member.socket.close()
            self._due[:] = [each for each in self._due if each[2] is not member]
            heapq.heapify(self._due)

    def close(self) -> None:
        """Close every connection."""
        for key in list(self._selector.get_map().values()):
            key.data.socket.close()
        self._selector.close()


class Watched:
    """A crowd in a process of its own."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        """The measurements, once the crowd has ended."""


@contextmanager
def crowd(bootstrap: str, topic: str, count: int, every: float = 0.0) -> Iterator[Watched]:
    """Keep connections open while the block runs; then `said` has their measurements."""
    command = [sys.executable, "-m", "bench.soak.crowd", bootstrap, topic, str(count), str(every)]
    watched = Watched()
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{' '.join(command)} failed; its messages are above")
        try:
            yield watched
        finally:
            said, _ = process.communicate(timeout=READY_SECONDS)
    watched.said = json.loads(said)


def main() -> None:
    """Run the command."""
    bootstrap, topic, count, every = sys.argv[1:]
    host, _, port = bootstrap.rpartition(":")
    raise_open_files()
    people = Crowd((host, int(port)), topic, int(count), float(every))
    people.connect()
    print("ready", flush=True)
    over = threading.Event()

    def until_told() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=until_told, daemon=True).start()
    people.serve(over)
    people.close()
    latencies = percentiles(people.latencies, digits=5)
    print(json.dumps({"responses": len(people.latencies), "lost": people.lost, "latency": latencies}))


if __name__ == "__main__":
    main()
