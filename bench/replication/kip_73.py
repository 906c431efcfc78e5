"""`python -m bench.replication`: KIP-73's test plan, through the proxy and on native Kafka.

Replicas move under a leader throttle, a follower throttle, and both; with and without produce load, on the
same partitions and on others; from one broker to another, from one to two, where the leader's throttle is the
narrow one, and from two to one, where the follower's is. Two clusters run side by side. The brokers of one
fetch from each other through the proxy and do not know the throttle. Each case runs on one cluster and then
on the other.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from bench.options import bench_parser
from bench.output.page import Page
from bench.replication.move import FOLLOWER, LEADER, Moved, Plan, move, p99
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.embedded_proxy import EmbeddedProxy
from proxy.demo.kafka.broker_properties import INTERNAL
from proxy.demo.ports import free_port_range

NATIVE: Final = "native"
PROXY: Final = "proxy"
OTHERS: Final = "others"
SAME: Final = "same"
BOTH: Final = (LEADER, FOLLOWER)
Route = tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
"""The replicas of the partitions in turn, before and after."""
ONE_TO_ONE: Final[Route] = (((1, 2),), ((1, 3),))
ONE_TO_ONE_OF_TWO: Final[Route] = (((1,),), ((1, 2),))
ONE_TO_TWO: Final[Route] = (((1,),), ((1, 2), (1, 3)))
TWO_TO_ONE: Final[Route] = (((1,), (2,)), ((1, 3), (2, 3)))


@dataclass(frozen=True)
class Case:
    """One reassignment, native and through the proxy."""

    name: str
    sides: tuple[str, ...]
    load: str = ""
    is_long: bool = False
    """Whether the move has --long-megabytes. The p99 of a short move is mostly that of its end
    (bench.replication.ends).
    """
    route: Route = ONE_TO_ONE


CASES: Final = (
    Case("leader", (LEADER,)),
    Case("follower", (FOLLOWER,)),
    Case("both", BOTH),
    Case("both, load on others", BOTH, OTHERS),
    Case("both, load on the same", BOTH, SAME),
    Case("both, load on others, long", BOTH, OTHERS, is_long=True),
    Case("both, load on the same, long", BOTH, SAME, is_long=True),
    Case("one to two", BOTH, route=ONE_TO_TWO),
    Case("one to two, load on others", BOTH, OTHERS, route=ONE_TO_TWO),
    Case("two to one", BOTH, route=TWO_TO_ONE),
    Case("two to one, load on others", BOTH, OTHERS, route=TWO_TO_ONE),
)
FETCHERS: Final = "num.replica.fetchers"
PORTS: Final = 10
"""Ports that the proxy reserves for brokers."""
WARM_UP_SECONDS: Final = 10
JVM_FLAGS: Final = (
    # The flags of Kafka's own scripts. The embedded Kafka's flags make it start quickly, but cost 15 ms per
    # garbage collection and slower code.
    *("-server", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Xms1g", "-Xmx1g"),
)


@dataclass(frozen=True)
class Site:
    """A cluster and the address for its clients."""

    kafka: EmbeddedKafka
    bootstrap: str


@contextmanager
def native(brokers: int, fetchers: int = 1) -> Iterator[Site]:
    """Run a cluster whose brokers fetch from each other directly. `fetchers`: num.replica.fetchers."""
    properties = {FETCHERS: str(fetchers)}
    with EmbeddedKafka(brokers, properties=properties, jvm_flags=JVM_FLAGS) as kafka:
        yield Site(kafka, kafka.bootstrap)


@contextmanager
def proxied(brokers: int, fetchers: int = 1) -> Iterator[Site]:
    """Run a cluster whose brokers fetch from each other through a proxy. `fetchers`: as in native()."""
    base = free_port_range(PORTS)
    advertised = {node: {INTERNAL: f"127.0.0.1:{base + node}"} for node in range(1, brokers + 1)}
    properties = {FETCHERS: str(fetchers)}
    kafka = EmbeddedKafka(brokers, properties=properties, advertised=advertised, jvm_flags=JVM_FLAGS)
    listener = {
        "name": "replication",
        "replication": True,
        "broker_port_base": base,
        "broker_port_count": PORTS,
        "upstream": {"brokers": {node: f"127.0.0.1:{kafka.port(node, INTERNAL)}" for node in advertised}},
    }
    with kafka, EmbeddedProxy(kafka.bootstrap, kafka.folder, [], [listener]) as proxy:
        yield Site(kafka, proxy.bootstrap)


def plans(options: argparse.Namespace) -> Iterator[tuple[str, Plan]]:
    """Yield the name and the plan of each case that is possible with this number of brokers."""
    for number, case in enumerate(CASES):
        before, after = case.route
        if options.brokers < 3 and case.route != ONE_TO_ONE:
            continue
        if options.brokers < 3:
            before, after = ONE_TO_ONE_OF_TWO
        topic = f"moved-{number}"
        loaded = {SAME: topic, OTHERS: f"others-{number}"}.get(case.load, "")
        megabytes = options.long_megabytes if case.is_long else options.megabytes
        yield (
            case.name,
            Plan(
                topic=topic,
                partitions=options.partitions,
                megabytes=megabytes,
                rate=options.rate,
                sides=case.sides,
                before=before,
                after=after,
                load=loaded,
            ),
        )


def warm_up(plan: Plan) -> Plan:
    """Return the plan of a small move, during which the brokers' JIT compiles the code."""
    megabytes = plan.rate * WARM_UP_SECONDS >> 20
    return replace(
        plan, topic="warm-up", megabytes=megabytes, load="warm-up-others", calm_seconds=WARM_UP_SECONDS
    )


def report(found: Sequence[tuple[str, Plan, dict[str, Moved]]]) -> list[str]:
    """Format the figures as Markdown."""
    lines = [
        "| throttle | | mean / quota | variation | 5 s / quota | time / plan "
        "| p99 ms | calm | x | lag x | equal |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for name, plan, moves in found:
        planned = plan.megabytes * 1024 * 1024 / plan.rate
        for site, moved in moves.items():
            figures = [moved.mean / plan.rate, moved.variation, moved.most_of_five / plan.rate]
            figures.append(moved.seconds / planned)
            shown = [f"{figure:.2f}" for figure in figures]
            felt = [1e3 * p99(moved.busy), 1e3 * p99(moved.calm), moved.slower, moved.farther]
            shown += [f"{figure:.2f}" if plan.load else "" for figure in felt]
            lines.append(f"| {name} | {site} | {' | '.join(shown)} | {'yes' if moved.equal else 'NO'} |")
    return lines


def main() -> None:
    """Run the command."""
    parser = bench_parser("replication", __doc__)
    parser.add_argument(
        "--brokers", type=int, default=3, help="brokers of each cluster, 2 or more (default: %(default)s)"
    )
    parser.add_argument(
        "--partitions", type=int, default=100, help="partitions of each move (default: %(default)s)"
    )
    parser.add_argument(
        "--megabytes", type=int, default=200, help="MiB of records in a move (default: %(default)s)"
    )
    parser.add_argument(
        "--long-megabytes", type=int, default=1000, help="MiB in a long move (default: %(default)s)"
    )
    parser.add_argument(
        "--rate", type=int, default=4 << 20, help="throttle, in bytes per second (default: %(default)s)"
    )
    parser.add_argument(
        "--cases", default="", metavar="TEXT", help="run the cases whose names contain TEXT; default: all"
    )
    parser.add_argument(
        "--fetchers", type=int, default=1, help="num.replica.fetchers of the brokers (default: %(default)s)"
    )
    options = parser.parse_args()
    page = Page()
    found: list[tuple[str, Plan, dict[str, Moved]]] = []
    cases = [(name, plan) for name, plan in plans(options) if options.cases in name]
    with (
        native(options.brokers, options.fetchers) as plain,
        proxied(options.brokers, options.fetchers) as through,
    ):
        for place in (plain, through):
            move(place.kafka, place.bootstrap, warm_up(cases[-1][1]), place.kafka.folder)
        for name, plan in cases:
            moves: dict[str, Moved] = {}
            for site, place in ((NATIVE, plain), (PROXY, through)):
                moves[site] = move(place.kafka, place.bootstrap, replace(plan), place.kafka.folder)
                print(
                    f"{name}, {site}: {[round(size / 1e6, 1) for size in moves[site].by_second]}", flush=True
                )
            found.append((name, plan, moves))
    page.save(options.name, report(found))
