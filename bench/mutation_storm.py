"""`python -m bench.mutation_storm`: how a storm of topic creations affects another tenant's CreateTopics.

It runs on a real Kafka, through the proxy. The storm is 50 connections that create batches of topics, one
request after the other, and ignore throttle times; it runs with a quota and without one. Calm phases and
storms alternate, so that other load on the machine affects all of them.
"""

import asyncio
import io
import multiprocessing
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Final

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import TopicName
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta

from bench.options import add_rounds, bench_parser
from bench.output.page import Page
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.embedded_proxy import EmbeddedProxy

CONNECTIONS: Final = 50
TOPICS: Final = 10
"""Topics of each request of the storm."""
PARTITIONS: Final = 10
"""Partitions of each of these topics."""
RATE: Final = 5
"""Partitions per second of the storm's quota."""
TARGET: Final = 1.5
"""How many times as long as in a calm phase a topic creation may take while the quota limits the storm."""
START_SECONDS: Final = 30.0
"""The longest wait until the storm has had as many responses as it has connections."""
CALM: Final = "calm"
LIMITED: Final = "storm with a quota"
FREE: Final = "storm, without a quota"
CLIENT_IDS: Final = {LIMITED: "limited", FREE: "free"}


def frame(client_id: str, names: Sequence[str], partitions: int, validate_only: bool) -> bytes:
    """Build a CreateTopics request; the storm's requests only validate, so that no topic remains."""
    topics = tuple(
        CreatableTopic(
            name=TopicName(name),
            num_partitions=i32(partitions),
            replication_factor=i16(1),
            assignments=(),
            configs=(),
        )
        for name in names
    )
    timeout = i32Timedelta.parse(timedelta(seconds=30))
    request = CreateTopicsRequest(topics=topics, timeout=timeout, validate_only=validate_only)
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(1),
        client_id=client_id,
    )
    payload = io.BytesIO()
    entity_writer(type(header))(payload, header)
    entity_writer(CreateTopicsRequest)(payload, request)
    return len(payload.getvalue()).to_bytes(4, "big") + payload.getvalue()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    """Send a request and read its response."""
    writer.write(request)
    await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def storm(port: int, client_id: str, responses: "multiprocessing.sharedctypes.Synchronized[int]") -> None:
    """Send requests on all connections until cancelled."""

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        names = [f"storm-{number}-{topic}" for topic in range(TOPICS)]
        request = frame(client_id, names, PARTITIONS, validate_only=True)
        while True:
            await ask(reader, writer, request)
            with responses.get_lock():
                responses.value += 1

    async def every() -> None:
        await asyncio.gather(*[one(number) for number in range(CONNECTIONS)])

    asyncio.run(every())


@contextmanager
def weather(port: int, kind: str, requests: dict[str, list[int]]) -> Iterator[None]:
    """Run this kind of storm while the block runs; record the number of its responses."""
    if kind == CALM:
        yield
        return
    context = multiprocessing.get_context("spawn")
    responses = context.Value("q", 0)
    process = context.Process(target=storm, args=(port, CLIENT_IDS[kind], responses), daemon=True)
    process.start()
    try:
        deadline = time.monotonic() + START_SECONDS
        while responses.value < CONNECTIONS and time.monotonic() < deadline:
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.join()
        requests.setdefault(kind, []).append(responses.value)


async def creates(port: int, numbers: Iterator[int], samples: int) -> list[float]:
    """Create topics one after the other; return the seconds that each took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = []
    for number in (next(numbers) for _ in range(samples)):
        request = frame("calm", [f"calm-{number}"], 1, validate_only=False)
        started = time.perf_counter()
        await ask(reader, writer, request)
        found.append(time.perf_counter() - started)
    writer.close()
    return found


def report(found: dict[str, list[float]], requests: dict[str, list[int]]) -> list[str]:
    """Format the figures as Markdown."""
    median = {kind: statistics.median(times) for kind, times in found.items()}
    lines = [
        "| | create, median ms | p90 ms | x calm | requests of the storm |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind, times in found.items():
        p90 = statistics.quantiles(times, n=10)[-1]
        ratio = median[kind] / median[CALM]
        figures = f"{median[kind] * 1000:.1f} | {p90 * 1000:.1f} | {ratio:.2f}"
        lines.append(f"| {kind} | {figures} | {sum(requests.get(kind, []))} |")
    ratio = median[LIMITED] / median[CALM]
    word = "met" if ratio < TARGET else "missed"
    lines += [
        "",
        f"- With a quota on the storm, another tenant's create takes {ratio:.2f} times as long",
    ]
    lines[-1] += f"; under {TARGET}: {word}"
    return lines


def main() -> None:
    """Run the command."""
    parser = bench_parser("mutation_storm", __doc__)
    add_rounds(parser, "phases of each kind")
    parser.add_argument(
        "--samples", type=int, default=30, help="topic creations in a phase (default: %(default)s)"
    )
    options = parser.parse_args()
    limits = [
        {"entity": {"client-id": CLIENT_IDS[LIMITED]}, "controller_mutation_rate": RATE},
        # It is unreachable: the calm tenant's quota is checked, and never throttles.
        {"entity": {"client-id": "calm"}, "controller_mutation_rate": 1_000_000},
    ]
    page = Page()
    found: dict[str, list[float]] = {CALM: [], LIMITED: [], FREE: []}
    requests: dict[str, list[int]] = {}
    numbers = count()
    with EmbeddedKafka() as kafka, EmbeddedProxy(kafka.bootstrap, kafka.folder, limits) as proxy:
        port = int(proxy.bootstrap.rpartition(":")[2])
        asyncio.run(creates(port, numbers, options.samples))  # warms up
        for _ in range(options.rounds):
            for kind, times in found.items():
                with weather(port, kind, requests):
                    times += asyncio.run(creates(port, numbers, options.samples))
    page.save(options.name, report(found, requests))


if __name__ == "__main__":
    main()
