"""`python -m bench.replication.ends`: how the end of a reassignment affects producers when there is no data
to move.

It uses native brokers without proxy and throttle. A hundred nearly empty partitions change a replica, one
after the other, under the produce load of bench.replication: either within the last seconds of a period as
long as a move of 200 MiB, as a throttled move ends, or spread over the period. The p99 that bench.replication
measures for so short a move includes this effect, with any throttle. A period without changes shows the
variation of the p99.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.admin import AlterPartitionReassignmentsRequest
from confluent_kafka.admin import AdminClient

from bench.options import add_rounds, bench_parser
from bench.output.page import Page
from bench.replication.kip_73 import OTHERS, Site, native, warm_up
from bench.replication.load import PARTITIONS, LoadSamples, loaded
from bench.replication.move import FOLLOWER, LEADER, Plan, Watch, fill, in_sync, make_topic, move, p99

STRETCH_SECONDS: Final = 50.0
"""The time of 200 MiB at 4 MiB/s."""
STRETCHES: Final = {"none": 0.0, "at the end": 6.0, "all along": 48.0}
"""The last seconds in which the replicas change."""
BEFORE: Final = ((1, 2),)
AFTER: Final = ((1, 3),)
BROKER: Final = 1
"""The broker that gets the requests; any broker forwards them to the controller."""
TIMEOUT_MS: Final = 30_000
_NO_TAGS: Final[dict[int, bytes]] = {}


@dataclass(frozen=True)
class Stretch:
    """The p99 of produce latency in seconds."""

    changes: str
    """One of STRETCHES."""
    calm: float
    busy: float

    @property
    def slower(self) -> float:
        return self.busy / self.calm


async def change_replicas(site: Site, plan: Plan, within: float) -> None:
    """Reassign one partition after the other, evenly over `within` seconds."""
    client = AIOKafkaClient(bootstrap_servers=site.bootstrap)
    await client.bootstrap()
    began = time.monotonic()
    try:
        for number in range(plan.partitions):
            await asyncio.sleep(began + within * number / plan.partitions - time.monotonic())
            wanted = (number, list(plan.replicas(number)), _NO_TAGS)
            request = AlterPartitionReassignmentsRequest(
                TIMEOUT_MS, [(plan.topic, [wanted], _NO_TAGS)], _NO_TAGS
            )
            response = await client.send(BROKER, request)
            codes = [code for _, partitions, _ in response.responses for _, code, _, _ in partitions]
            if any([response.error_code, *codes]):
                raise RuntimeError(f"partition {number} was not reassigned: {response}")
    finally:
        await client.close()


def stretch(site: Site, plan: Plan, changes: str) -> Stretch:
    """Run the load, first calm, then while replicas change."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    make_topic(admin, plan.topic, plan.partitions, plan.before)
    fill(site.bootstrap, plan)
    make_topic(admin, plan.load, PARTITIONS, plan.loaded_on)
    samples, within = LoadSamples(), STRETCHES[changes]
    watch = Watch(site.kafka, admin, plan)
    with loaded(site.bootstrap, plan.load, samples):
        began = time.monotonic()
        _look_until(watch, began + plan.calm_seconds)
        turned = time.monotonic()
        _look_until(watch, turned + STRETCH_SECONDS - within)
        if within:
            with ThreadPoolExecutor() as pool:
                changing = pool.submit(asyncio.run, change_replicas(site, plan, within))
                while not changing.done():
                    watch.look()
                changing.result()
        ended = time.monotonic()
    if within and not in_sync(admin, plan):
        raise RuntimeError("not every partition got its replica")
    admin.delete_topics([plan.topic])[plan.topic].result(60)
    return Stretch(changes, p99(samples.between(began, turned)), p99(samples.between(turned, ended)))


def _look_until(watch: Watch, until: float) -> None:
    while time.monotonic() < until:
        watch.look()


def report(found: Sequence[Stretch]) -> list[str]:
    """Format the figures as Markdown."""
    lines = ["| replicas change | p99 ms | calm | x |", "|---|---:|---:|---:|"]
    lines += [
        f"| {one.changes} | {1e3 * one.busy:.2f} | {1e3 * one.calm:.2f} | {one.slower:.2f} |" for one in found
    ]
    lines += ["", "| replicas change | x, mean | least | most |", "|---|---:|---:|---:|"]
    for changes in STRETCHES:
        slower = [one.slower for one in found if one.changes == changes]
        if slower:
            mean = statistics.mean(slower)
            lines.append(f"| {changes} | {mean:.2f} | {min(slower):.2f} | {max(slower):.2f} |")
    return lines


def main() -> None:
    """Run the command."""
    parser = bench_parser("replication.ends", __doc__)
    add_rounds(parser, "periods of each kind")
    parser.add_argument(
        "--partitions", type=int, default=100, help="partitions that change a replica (default: %(default)s)"
    )
    parser.add_argument(
        "--calm-seconds",
        type=float,
        default=60.0,
        help="seconds of load before each period (default: %(default)s)",
    )
    options = parser.parse_args()
    sides = (LEADER, FOLLOWER)
    plan = Plan(
        topic="moved",
        partitions=options.partitions,
        megabytes=1,
        rate=4 << 20,
        sides=sides,
        before=BEFORE,
        after=AFTER,
        load=OTHERS,
        calm_seconds=options.calm_seconds,
    )
    page = Page()
    found: list[Stretch] = []
    with native(3) as site:
        move(site.kafka, site.bootstrap, warm_up(plan), site.kafka.folder)
        for number in range(options.rounds):
            for changes in STRETCHES:
                name = f"{changes.replace(' ', '-')}-{number}"
                of = replace(plan, topic=f"moved-{name}", load=f"{OTHERS}-{name}")
                found.append(stretch(site, of, changes))
                print(f"{changes}: {found[-1].slower:.2f}", flush=True)
    page.save(options.name, report(found))


if __name__ == "__main__":
    main()
