"""client_ids: one client uses very many client ids, each of which has a bucket."""

import socket
import time
from typing import Final

from bench.soak.process import resident
from bench.soak.scenario import Outcome, Run, Scenario
from proxy.quota.measure.buckets import BUCKETS_AT_MOST
from tests.support.kafka.topics import make_topic
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.requests import batch, produce
from tests.support.process.proxy_process import HOST, ProxyProcess

CLIENT_IDS: Final = 200_000
SHORT_CLIENT_IDS: Final = 1_000
LENGTH: Final = 4
"""Bytes of a frame's length."""
TOGETHER: Final = 50
"""The number of requests that are sent before their responses are read."""
BYTES_PER_CLIENT_ID: Final = 6 << 10
"""The limit for the memory of a client id while the proxy knows it."""
SERIES: Final = 20_000
"""A limit above the number of lines that the metrics have with any number of client ids."""
GROWTH_BYTES: Final = 16 << 20
"""The limit for the memory of as many client ids again, for which the earlier ones are evicted."""
TOPIC: Final = "soak-client-ids"


def run(run: Run) -> Outcome:
    """Send a request for each client id, and twice as many with other ids."""
    outcome = Outcome()
    count = run.amount(CLIENT_IDS, SHORT_CLIENT_IDS)
    make_topic(run.kafka, TOPIC)
    quotas = [{"entity": {"client-id": "<default>"}, "producer_byte_rate": 1 << 20}]
    with ProxyProcess(run.folder / "client-ids", run.kafka.bootstrap, quotas) as proxy:
        pid = proxy.process.pid
        memory = [resident(pid)]
        seconds: list[float] = []
        for first in (0, count, 2 * count):
            started = time.monotonic()
            _send(proxy.broker_port(1), first, count)
            seconds.append(time.monotonic() - started)
            memory.append(resident(pid))
        started = time.monotonic()
        _, page = proxy.get("/metrics")
        scrape = time.monotonic() - started
        shown = len(proxy.buckets())
    lines = page.count("\n")
    per_id = (memory[1] - memory[0]) / count
    outcome.figures = {
        "client_ids": 3 * count,
        "resident_mib": [round(each / (1 << 20), 1) for each in memory],
        "bytes_per_client_id": round(per_id),
        "requests_per_second": [round(count / each) for each in seconds],
        "lines_of_metrics": lines,
        "scrape_seconds": round(scrape, 3),
        "buckets": shown,
    }
    outcome.check(lines < SERIES, f"/metrics has {lines} lines")
    if not run.short:
        outcome.check(per_id <= BYTES_PER_CLIENT_ID, f"a client id costs {per_id:.0f} bytes")
        grown = memory[3] - memory[2]
        holds = grown <= GROWTH_BYTES or not evicts(count)
        outcome.check(holds, f"{count} further client ids cost {grown} bytes")
    return outcome


def evicts(count: int) -> bool:
    """Whether the last `count` of three times as many client ids evict others. If not, all are kept."""
    return 2 * count >= BUCKETS_AT_MOST


def _send(port: int, first: int, count: int) -> None:
    """Send a Produce request for each of these client ids, on one connection."""
    placeholder = b"id-########"
    frame = request_frame(produce(TOPIC, batch([b"x"])), 1, placeholder.decode())
    before, after = frame.split(placeholder)
    with socket.create_connection((HOST, port), timeout=60) as client, client.makefile("rb") as responses:
        for begin in range(first, first + count, TOGETHER):
            ids = range(begin, min(begin + TOGETHER, first + count))
            client.sendall(b"".join(before + b"id-%08d" % each + after for each in ids))
            for _ in ids:
                size = int.from_bytes(responses.read(LENGTH), "big")
                if len(responses.read(size)) < size or not size:
                    raise ConnectionError("the proxy closed the connection")


SCENARIO: Final = Scenario("client_ids", "200,000 client ids, three times over", run)
