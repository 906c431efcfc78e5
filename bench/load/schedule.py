"""When the driver sends: on each response (closed loop), or at a fixed rate (open loop)."""

import time
from array import array
from collections.abc import Callable, Sequence
from typing import Final

from bench.load.client import Client, LoadError
from bench.load.poller import Poller

PATIENCE_SECONDS: Final = 30.0
"""The longest time without any response."""


class Schedule:
    """Drives `clients` and records the latency of every response in seconds."""

    def __init__(self, poller: Poller, clock: Callable[[], float] = time.perf_counter) -> None:
        self._poller = poller
        self._clock = clock
        self._to_offer = 0
        """Requests that the closed loop has still to offer."""
        self.latencies = array("d")

    def on_response(self, client: Client, due: float) -> None:
        """Record the response to a request that was due at `due`; in the closed loop, send the next one."""
        now = self._clock()
        self.latencies.append(now - due)
        if self._to_offer:
            self._to_offer -= 1
            client.offer(now)

    def closed_loop(self, clients: Sequence[Client], requests: int, depth: int) -> None:
        """Send `requests` in total, `depth` in flight per connection. Latency is measured from sending."""
        self.latencies = array("d")
        first = min(requests, depth * len(clients))
        self._to_offer = requests - first
        for n in range(first):
            clients[n % len(clients)].offer(self._clock())
        while len(self.latencies) < requests:
            if not self._poller.wait(PATIENCE_SECONDS):
                self._give_up(requests)

    def open_loop(self, clients: Sequence[Client], requests: int, rate: float) -> None:
        """Send `rate` requests per second over the connections in turn, regardless of what is in flight.

        Latency is measured from the intended time, so that it includes the delay of requests due during a
        stall.
        """
        self.latencies = array("d")
        self._to_offer = 0
        begin = self._clock()
        offered = 0
        while len(self.latencies) < requests:
            now = self._clock()
            while offered < requests and begin + offered / rate <= now:
                clients[offered % len(clients)].offer(begin + offered / rate)
                offered += 1
            if offered < requests:
                self._poller.wait_until_due(begin + offered / rate - self._clock())
            elif not self._poller.wait(PATIENCE_SECONDS):
                self._give_up(requests)

    def _give_up(self, requests: int) -> None:
        raise LoadError(f"no response for {PATIENCE_SECONDS:.0f} s; got {len(self.latencies)} of {requests}")
