"""`python -m bench.real_broker`: Kafka's performance tools on a real Kafka, directly and through the proxy.

kafka-producer-perf-test and kafka-consumer-perf-test run with records of 100 bytes and of 1 KB in three ways,
as in the experiment of KAFKA-16042 (baseline, topic quotas off, topic quotas on): directly; through a proxy
with byte quotas of clients; and through one that also has byte rates of topic partitions. No limit is ever
reached. Where HAProxy is installed, the tools also run through it, in TCP mode. The ways alternate, so that
other load on the machine affects all of them.
"""

import re
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench.load.process import cpu_seconds
from bench.options import add_quick, add_rounds, bench_parser
from bench.output.page import Page
from bench.peers.haproxy import HaProxy
from bench.peers.peer import HOST, Setting, Unavailable, free_ports
from bench.replication.kip_73 import JVM_FLAGS
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.embedded_proxy import EmbeddedProxy

DIRECT: Final = "direct"
OFF: Final = "proxy, topic quotas off"
ON: Final = "proxy, topic quotas on"
HAPROXY: Final = "HAProxy"
WAYS: Final = (DIRECT, OFF, ON, HAPROXY)
RELAYED: Final = "RELAYED"
"""The listener of the broker behind HAProxy."""
PRODUCE: Final = "produce"
CONSUME: Final = "consume"
SIZES: Final = (100, 1000)
LIMIT: Final = 10**11
"""Bytes per second: unreachable."""
PARTITIONS: Final = 6
TOOL_SECONDS: Final = 600.0
"""The timeout of a run of a tool."""
LEAST_THROUGHPUT: Final = 0.95
"""The goal for the throughput through the proxy, as a part of the direct one."""
MOST_CPU: Final = 0.1
"""The goal for the proxy's CPU time, as a part of the broker's."""
_PRODUCED: Final = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One run of a tool."""

    records_per_second: float
    broker_cpu: float
    proxy_cpu: float
    """CPU seconds; those of the proxy, or of HAProxy, are 0.0 without one."""


Key = tuple[int, str, str]
"""The size of the records, the tool and the way."""
Found = dict[Key, list[Run]]


def produced(output: str, records: int) -> float:
    """The records per second that kafka-producer-perf-test has printed. Raises ValueError if any failed."""
    found = _PRODUCED.findall(output)
    if not found or int(found[-1][0]) != records:
        raise ValueError(f"kafka-producer-perf-test has not sent {records} records:\n{output}")
    return float(found[-1][1])


def consumed(output: str, records: int) -> float:
    """The records per second in the output of kafka-consumer-perf-test, without the time of the rebalance."""
    values = [value.strip() for value in output.strip().splitlines()[-1].split(",")]
    if len(values) < 10 or int(values[4]) < records:
        raise ValueError(f"kafka-consumer-perf-test has not read {records} records:\n{output}")
    return float(values[-1])


@dataclass(frozen=True)
class Place:
    """One of WAYS: where clients connect, and the processes whose CPU counts."""

    kafka: EmbeddedKafka
    bootstrap: str
    proxy_pid: int | None

    def _cpu(self) -> tuple[float, float]:
        proxy = 0.0 if self.proxy_pid is None else cpu_seconds(self.proxy_pid)
        return cpu_seconds(self.kafka.pid(1)), proxy

    def run(self, kind: str, topic: str, size: int, records: int) -> Run:
        """Run one tool. Raises ValueError if it has not processed all records."""
        arguments = ["--bootstrap-server", self.bootstrap, "--topic", topic, "--num-records", str(records)]
        if kind == PRODUCE:
            tool = "kafka-producer-perf-test"
            arguments += ["--record-size", str(size), "--throughput", "-1"]
        else:
            tool = "kafka-consumer-perf-test"
            arguments += ["--hide-header", "--timeout", "60000"]
        arguments += ["--command-property", "client.id=bench"]
        broker, proxy = self._cpu()
        output = self.kafka.run_tool(tool, *arguments, timeout=TOOL_SECONDS).stdout
        after = self._cpu()
        rate = produced(output, records) if kind == PRODUCE else consumed(output, records)
        return Run(rate, after[0] - broker, after[1] - proxy)


def measure(places: dict[str, Place], number: str, size: int, records: int, found: Found) -> None:
    """Run both tools in each way, with records of `size` bytes; add the runs to `found`."""
    for way, place in places.items():
        kafka = place.kafka
        topic = f"bench-{size}-{number}-{WAYS.index(way)}"
        at_broker = ("--bootstrap-server", kafka.bootstrap, "--topic", topic)
        kafka.run_tool("kafka-topics", *at_broker, "--create", "--partitions", str(PARTITIONS))
        for kind in (PRODUCE, CONSUME):
            found.setdefault((size, kind, way), []).append(place.run(kind, topic, size, records))
        kafka.run_tool("kafka-topics", *at_broker, "--delete")


def report(found: Found) -> list[str]:
    """Format the figures as Markdown. Ratios are those of the medians."""
    lines = [
        "| records | tool | way | records/s | / direct | proxy's CPU / broker's | goals |",
        "|---:|---|---|---:|---:|---:|---|",
    ]
    for (size, kind, way), runs in found.items():
        rates = [run.records_per_second for run in runs]
        rate = statistics.median(rates)
        shown = f"| {size} B | {kind} | {way} | {rate:,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
        if way == DIRECT:
            lines.append(f"{shown} | | | |")
            continue
        ratio = rate / statistics.median(run.records_per_second for run in found[size, kind, DIRECT])
        cpu = statistics.median(run.proxy_cpu / run.broker_cpu for run in runs)
        met = "" if way == HAPROXY else f" {_word(ratio >= LEAST_THROUGHPUT)}, {_word(cpu <= MOST_CPU)}"
        lines.append(f"{shown} | {ratio:.2f} | {cpu:.0%} |{met} |")
    goals = (
        f"at least {LEAST_THROUGHPUT} of the direct throughput, at most {MOST_CPU:.0%} of the broker's CPU"
    )
    return [*lines, "", f"- Goals: {goals}"]


def _word(met: bool) -> str:
    return "met" if met else "missed"


def main() -> None:
    """Run the command."""
    parser = bench_parser("real_broker", __doc__)
    parser.add_argument(
        "--megabytes", type=int, default=400, help="MB of records in each run (default: %(default)s)"
    )
    add_rounds(parser, "runs of each tool and way")
    add_quick(parser, "2 MB and one round")
    options = parser.parse_args()
    megabytes, rounds = (2, 1) if options.quick else (options.megabytes, options.rounds)
    page = Page()
    found: Found = {}
    with ExitStack() as stack:
        places = _places(stack)
        for size in SIZES:
            records = megabytes * 1_000_000 // size
            if not options.quick:
                measure(places, "warm-up", size, records, {})
            for number in range(rounds):
                measure(places, str(number), size, records, found)
                print(f"{size} B, round {number + 1} of {rounds}", flush=True)
    page.save(options.name, report(found))


def _places(stack: ExitStack) -> dict[str, Place]:
    """Start the broker and all proxies; HAProxy only if it is installed."""
    (port,) = free_ports(1)
    kafka = stack.enter_context(
        EmbeddedKafka(
            properties={"log.segment.delete.delay.ms": "1000"},
            listeners={RELAYED: "PLAINTEXT"},
            advertised={1: {RELAYED: f"{HOST}:{port}"}},
            jvm_flags=JVM_FLAGS,
        )
    )
    places = {DIRECT: Place(kafka, kafka.bootstrap, None)}
    rates = dict.fromkeys(("producer.byte.rate", "consumer.byte.rate"), LIMIT)
    for way, topics in ((OFF, {}), (ON, {"<default>": rates})):
        places[way] = _through_proxy(stack, kafka, way, topics)
    try:
        haproxy = HaProxy()
    except Unavailable as reason:
        print(f"skipped: {reason}", flush=True)
        return places
    setting = Setting(kafka.port(1, RELAYED), tenants=0, folder=kafka.folder, port=port)
    running = stack.enter_context(haproxy.start(setting))
    places[HAPROXY] = Place(kafka, f"{HOST}:{port}", running.pid)
    return places


def _through_proxy(
    stack: ExitStack, kafka: EmbeddedKafka, way: str, topics: dict[str, dict[str, int]]
) -> Place:
    folder = kafka.folder / f"proxy-{WAYS.index(way)}"
    folder.mkdir()
    limits = dict.fromkeys(("producer_byte_rate", "consumer_byte_rate"), LIMIT)
    clients: Sequence[dict[str, object]] = [{"entity": {"client-id": "bench"}, **limits}]
    more = {"store": "none", **({"topics": topics} if topics else {})}
    proxy = stack.enter_context(EmbeddedProxy(kafka.bootstrap, folder, clients, more_quotas=more))
    return Place(kafka, proxy.bootstrap, proxy.pid)


if __name__ == "__main__":
    main()
