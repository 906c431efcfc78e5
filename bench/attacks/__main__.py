"""`python -m bench.attacks [NAME ...]`: how attacks of one client affect a neighbour.

It runs on a real Kafka with the proxy before it. The neighbour produces 200 bytes every 5 ms. Calm phases
alternate with attacks, so that other load on the machine affects both; the figures are those of the attack,
and how many times the calm ones they are. With --native the same is measured without the proxy. With --turns
it measures the CPU time of the turns of the proxy's event loop instead, which other load hardly changes.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import datetime
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from bench.attacks.attacker import attacking
from bench.attacks.catalogue import ATTACKS, Target
from bench.attacks.frames import CLIENT_ID
from bench.attacks.neighbour import Neighbour, latencies
from bench.attacks.report import NATIVE, PROXY, Measured, report, report_turns
from bench.attacks.turns import LoopTurns
from bench.page import Page
from bench.peers.tls import make_certificate
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.embedded_proxy import EmbeddedProxy
from proxy.demo.ports import free_port_range

TOPIC: Final = "attacked"
WARM_UP_SECONDS: Final = 3.0
ANY_RATE: Final = 1e12


def measure(
    name: str, where: str, target: Target, seconds: float, rounds: int, turns: LoopTurns | None
) -> Measured:
    """Alternate calm phases with an attack."""
    calm: list[float] = []
    attacked: list[float] = []
    responses = ends = 0
    before = [] if turns is None else turns.read()
    with Neighbour(target.port, TOPIC) as neighbour:
        neighbour.measure(WARM_UP_SECONDS / 3)
        for _ in range(rounds):
            calm += neighbour.measure(seconds)
            with attacking(name, target) as done:
                neighbour.measure(WARM_UP_SECONDS)
                attacked += neighbour.measure(seconds)
                responses += done.responses.value
                ends += done.ends.value
            neighbour.measure(WARM_UP_SECONDS / 3)
    counted = None if turns is None else turns.since(before)
    return Measured(name, where, latencies(calm), latencies(attacked), responses, ends, counted)


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
def targets(options: argparse.Namespace) -> Iterator[tuple[dict[str, Target], LoopTurns | None]]:
    """Start Kafka and the proxy; yield the targets of the attacks, and the turns if they are counted."""
    tls = free_port_range(10)
    with EmbeddedKafka() as kafka:
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
        limits: list[dict[str, object]] = [
            {"entity": {"user": "<default>"}, "producer_byte_rate": ANY_RATE, "consumer_byte_rate": ANY_RATE},
        ]
        if options.request_percentage is not None:
            attacker = {"client-id": CLIENT_ID}
            limits.append({"entity": attacker, "request_percentage": options.request_percentage})
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
            found = {PROXY: Target(port, TOPIC, raw, tls)}
            if options.native:
                found[NATIVE] = Target(kafka.port(1), TOPIC, raw)
            yield found, turns


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.attacks", description=__doc__)
    parser.add_argument("attacks", nargs="*", choices=[[], *ATTACKS], default=[], help="all by default")
    parser.add_argument("--native", action="store_true", help="also measure without the proxy")
    parser.add_argument("--request-percentage", type=float, help="the attacker's quota; none by default")
    parser.add_argument("--turns", action="store_true", help="measure the turns of the proxy's event loop")
    parser.add_argument("--all-kinds", action="store_true", help="with quotas of topics, and usage events")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each phase")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--name", default=f"attacks-{datetime.now():%Y%m%d-%H%M%S}")
    options = parser.parse_args()
    page = Page()
    figures = []
    form = report_turns if options.turns else report
    with targets(options) as (found, turns):
        # The proxy is first: a direct attack keeps the broker busy beyond its end.
        for where, target in found.items():
            for name in options.attacks or ATTACKS:
                if where == NATIVE and name == "tls_handshakes":
                    continue
                figures.append(measure(name, where, target, options.seconds, options.rounds, turns))
                print("\n".join(form(figures[-1:])[2:3]), f"load {os.getloadavg()[0]:.1f}", flush=True)
    page.save(options.name, form(figures))


if __name__ == "__main__":
    main()
