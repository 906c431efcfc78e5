"""`python -m bench.attacks [NAME ...]`: how attacks of one client affect a neighbour.

It runs on a real Kafka with the proxy before it. The neighbour produces 200 bytes every 5 ms. Calm phases
alternate with attacks, so that other load on the machine affects both; the figures are those of the attack,
and how many times the calm ones they are. A second neighbour does the same at the broker itself, and shows
what part of the latency is the broker's. With --native the same is measured without the proxy, with the same
quotas for the attacker, which Kafka then enforces. With --turns it measures the CPU time of the turns of the
proxy's event loop instead, which other load hardly changes.

The broker has the JVM flags of Kafka's scripts and Kafka's default numbers of threads: the serial collector
of the embedded Kafka stops it for more than 100 ms at a time. Each attack is first sent to the broker itself
for a moment, so that Java has compiled what it runs, as in a broker that has run for days.
"""

import argparse
import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from bench.attacks.attacker import attacking
from bench.attacks.catalogue import ATTACKS, Target
from bench.attacks.neighbour import Neighbour, latencies, measure_all
from bench.attacks.quotas import attacker_quotas, in_yaml, key_and_value, limit_attackers
from bench.attacks.report import NATIVE, PROXY, Measured, report, report_turns
from bench.attacks.turns import LoopTurns
from bench.options import add_rounds, bench_parser
from bench.output.page import Page
from bench.peers.tls import make_certificate
from bench.replication.kip_73 import JVM_FLAGS
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.embedded_proxy import EmbeddedProxy
from proxy.demo.ports import free_port_range

TOPIC: Final = "attacked"
WARM_UP_SECONDS: Final = 1.0
"""Between two phases that are measured: an attack begins to have its effect, or ends to."""
RECORDS: Final = 60
RECORD_BYTES: Final = 1_000_000
"""The records that the topic has before the attacks: more than the largest Fetch of an attack, 50 MiB."""
ANY_RATE: Final = 1e12
"""Bytes/s that no client reaches: the proxy checks these quotas, and never throttles."""
THREADS: Final = {"num.network.threads": "3", "num.io.threads": "8"}
"""Kafka's defaults."""
UNKNOWN_TO_BROKERS: Final = "tls_handshakes"
"""The attack for which the broker has no port."""
SETTLE_SECONDS: Final = 3.0
"""After the warm-up, until the broker has nothing left to do."""


def measure(
    name: str,
    where: str,
    target: Target,
    *,
    broker: int,
    seconds: float,
    rounds: int,
    nice: int,
    turns: LoopTurns | None,
) -> Measured:
    """Alternate calm phases with an attack; `broker` is the port of the broker itself."""
    ports = [target.port] if target.port == broker else [target.port, broker]
    calm: list[list[float]] = [[] for _ in ports]
    attacked: list[list[float]] = [[] for _ in ports]
    responses = ends = throttled_ms = 0
    before = [] if turns is None else turns.read()
    with ExitStack() as stack:
        neighbours = [stack.enter_context(Neighbour(port, TOPIC)) for port in ports]

        def phase(length: float, found: list[list[float]] | None = None) -> None:
            for number, more in enumerate(measure_all(neighbours, length)):
                if found is not None:
                    found[number] += more

        phase(WARM_UP_SECONDS)
        for _ in range(rounds):
            phase(seconds, calm)
            with attacking(name, target, nice) as done:
                phase(WARM_UP_SECONDS)
                phase(seconds, attacked)
                responses += done.responses.value
                ends += done.ends.value
                throttled_ms += done.throttled_ms.value
            phase(WARM_UP_SECONDS)
    counted = None if turns is None else turns.since(before)
    return Measured(
        attack=name,
        target=where,
        calm=latencies(calm[0]),
        attacked=latencies(attacked[0]),
        responses=responses,
        ends=ends,
        throttled_seconds=throttled_ms / 1000,
        at_broker=(latencies(calm[1]), latencies(attacked[1])) if len(ports) > 1 else None,
        turns=counted,
    )


def warm_up(names: Sequence[str], broker: Target, seconds: float) -> None:
    """Send each attack to the broker for so long."""
    with Neighbour(broker.port, TOPIC) as neighbour:
        for name in names:
            if name != UNKNOWN_TO_BROKERS:
                with attacking(name, broker):
                    neighbour.measure(seconds)
        neighbour.measure(SETTLE_SECONDS)


def topic_id(admin: AdminClient) -> bytes:
    """Return the id of TOPIC, as soon as the broker that is asked knows the new topic."""
    while True:
        try:
            described = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(60)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            continue
        halves = (
            described.topic_id.get_most_significant_bits(),
            described.topic_id.get_least_significant_bits(),
        )
        return b"".join(int(half).to_bytes(8, "big", signed=True) for half in halves)


@contextmanager
def targets(options: argparse.Namespace) -> Iterator[tuple[Target, Target, LoopTurns | None]]:
    """Start Kafka and the proxy; yield the proxy and the broker, and the turns if they are counted."""
    tls = free_port_range(10)
    with EmbeddedKafka(properties=THREADS, jvm_flags=JVM_FLAGS) as kafka:
        made = make_certificate(kafka.folder)
        listener = {
            "name": "tls",
            "bind": "127.0.0.1",
            "bootstrap_port": tls,
            "broker_port_base": tls + 1,
            "broker_port_count": 8,
            "upstream": {"bootstrap": kafka.bootstrap.split(",")},
            "tls": {"certificate": str(made.certificate), "key": str(made.key)},
        }
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(60)
        raw = topic_id(admin)
        with Neighbour(kafka.port(1), TOPIC, RECORD_BYTES) as filler:
            for _ in range(RECORDS):
                filler.produce()
        limits: list[dict[str, object]] = [
            {"entity": {"user": "<default>"}, "producer_byte_rate": ANY_RATE, "consumer_byte_rate": ANY_RATE},
        ]
        limits += in_yaml(attacker_quotas(options.quota))
        more: dict[str, object] = {}
        usage: dict[str, object] | None = None
        if options.all_kinds:
            rates = dict.fromkeys(("producer.byte.rate", "consumer.byte.rate"), ANY_RATE)
            more["topics"] = {"<default>": rates}
            usage = {"files": {"folder": str(kafka.folder / "usage")}}
        turns = LoopTurns(kafka.folder) if options.turns else None
        with ExitStack() as stack:
            with nullcontext() if turns is None else turns.preloaded():
                started = EmbeddedProxy(kafka.bootstrap, kafka.folder, limits, [listener], more, usage)
                proxy = stack.enter_context(started)
            port = int(proxy.bootstrap.rpartition(":")[2])
            yield Target(port, TOPIC, raw, tls), Target(kafka.port(1), TOPIC, raw), turns


def main() -> None:
    """Run the command."""
    parser = bench_parser("attacks", __doc__)
    parser.add_argument(
        "attacks", nargs="*", choices=[[], *ATTACKS], default=[], help="attacks to measure; default: all"
    )
    parser.add_argument("--native", action="store_true", help="measure without the proxy, too")
    parser.add_argument(
        "--quota",
        action="append",
        type=key_and_value,
        default=[],
        metavar="KEY=VALUE",
        help="quota of each attacker, such as request_percentage=10, or of their address"
        " (connection_creation_rate); may be repeated; with --native also at Kafka; default: none",
    )
    parser.add_argument(
        "--nice",
        type=int,
        default=0,
        help="nice value of the attacker; with 19, it takes little CPU time from the others, like a client on"
        " another machine (default: %(default)s)",
    )
    parser.add_argument("--turns", action="store_true", help="measure the turns of the proxy's event loop")
    parser.add_argument("--all-kinds", action="store_true", help="add quotas of topics, and usage events")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="length of a phase, in seconds (default: %(default)s)"
    )
    parser.add_argument(
        "--warm-up",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="how long each attack is first sent to the broker (default: %(default)s)",
    )
    add_rounds(parser, "rounds of each attack: a calm phase, and one under attack", 3)
    options = parser.parse_args()
    page = Page()
    figures = []
    form = report_turns if options.turns else report
    with targets(options) as (proxy, broker, turns):

        def run(where: str, target: Target, name: str) -> None:
            found = measure(
                name,
                where,
                target,
                broker=broker.port,
                seconds=options.seconds,
                rounds=options.rounds,
                nice=options.nice,
                turns=turns,
            )
            figures.append(found)
            print("\n".join(form(figures[-1:])[2:3]), f"load {os.getloadavg()[0]:.1f}", flush=True)

        names = options.attacks or list(ATTACKS)
        if options.warm_up > 0.0 and turns is None:
            warm_up(names, broker, options.warm_up)
        # The proxy is first: a direct attack keeps the broker busy beyond its end.
        for name in names:
            run(PROXY, proxy, name)
        if options.native:
            asyncio.run(limit_attackers(broker.port, attacker_quotas(options.quota)))
            for name in names:
                if name != UNKNOWN_TO_BROKERS:
                    run(NATIVE, broker, name)
    page.save(options.name, form(figures))


if __name__ == "__main__":
    main()
