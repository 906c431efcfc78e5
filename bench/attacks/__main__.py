"""`python -m bench.attacks [NAME ...]`: how attacks of one client affect a neighbour.

It runs on a real Kafka with the proxy before it. The neighbour produces 200 bytes every 5 ms. Calm phases
alternate with attacks, so that other load on the machine affects both; the figures are those of the attack,
and how many times the calm ones they are. With --native the same is measured without the proxy.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from bench.attacks.attacker import attacking
from bench.attacks.catalogue import ATTACKS, Target
from bench.attacks.frames import CLIENT_ID
from bench.attacks.neighbour import Neighbour, latencies
from bench.attacks.report import NATIVE, PROXY, Measured, report
from bench.page import Page
from bench.peers.tls import make_certificate
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.embedded_proxy import EmbeddedProxy
from proxy.demo.ports import free_port_range

TOPIC: Final = "attacked"
WARM_UP_SECONDS: Final = 3.0


def measure(name: str, where: str, target: Target, seconds: float, rounds: int) -> Measured:
    """Alternate calm phases with an attack."""
    calm: list[float] = []
    attacked: list[float] = []
    responses = ends = 0
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
    return Measured(name, where, latencies(calm), latencies(attacked), responses, ends)


@contextmanager
def targets(native: bool, request_percentage: float | None) -> Iterator[dict[str, Target]]:
    """Start Kafka and the proxy; yield the targets of the attacks."""
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
        described = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(60)
        topic_id = int(described.topic_id.get_most_significant_bits()) % (1 << 64)
        low = int(described.topic_id.get_least_significant_bits()) % (1 << 64)
        raw = topic_id.to_bytes(8, "big") + low.to_bytes(8, "big")
        limits: list[dict[str, object]] = [
            {"entity": {"user": "<default>"}, "producer_byte_rate": 1e12, "consumer_byte_rate": 1e12},
        ]
        if request_percentage is not None:
            attacker = {"client-id": CLIENT_ID}
            limits.append({"entity": attacker, "request_percentage": request_percentage})
        with EmbeddedProxy(kafka.bootstrap, kafka.folder, limits, [listener]) as proxy:
            port = int(proxy.bootstrap.rpartition(":")[2])
            found = {PROXY: Target(port, TOPIC, raw, tls)}
            if native:
                found[NATIVE] = Target(kafka.port(1), TOPIC, raw)
            yield found


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.attacks", description=__doc__)
    parser.add_argument("attacks", nargs="*", choices=[[], *ATTACKS], default=[], help="all by default")
    parser.add_argument("--native", action="store_true", help="also measure without the proxy")
    parser.add_argument("--request-percentage", type=float, help="the attacker's quota; none by default")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each phase")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--name", default=f"attacks-{datetime.now():%Y%m%d-%H%M%S}")
    options = parser.parse_args()
    page = Page()
    figures = []
    with targets(options.native, options.request_percentage) as found:
        # The proxy is first: a direct attack keeps the broker busy beyond its end.
        for where, target in found.items():
            for name in options.attacks or ATTACKS:
                if where == NATIVE and name == "tls_handshakes":
                    continue
                figures.append(measure(name, where, target, options.seconds, options.rounds))
                print("\n".join(report(figures[-1:])[2:3]), f"load {os.getloadavg()[0]:.1f}", flush=True)
    page.save(options.name, report(figures))


if __name__ == "__main__":
    main()
