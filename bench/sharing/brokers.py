"""`python -m bench.sharing.brokers`: three proxies with one limit, in front of three brokers of a real Kafka.

Three producers of one tenant send as much as they may, each to a broker of its own: first one of them, then
all, then two; then the proxy of one is killed. This happens in three ways: through proxies that share the
limit (`scope: cluster`), through proxies of which each has a third of it, and without a proxy, with the same
quota at the brokers. The brokers' timestamps of the batches show the rates.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Final

from bench.options import add_quick, bench_parser
from bench.output.line_chart import COLORS, INK, Line, LineChart
from bench.output.page import Page
from bench.sharing.processes import PICTURES
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.flood import Reachable, producing
from tests.support.kafka.rates import per_second
from tests.support.kafka.topics import appended, make_topic
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

LIMIT: Final = 1_000_000
"""Bytes per second."""
TENANT: Final = "bench-sharing"
SHARED: Final = "shared by the proxies"
DIVIDED: Final = "a third for each proxy"
NATIVE: Final = "Kafka without a proxy"
WAYS: Final = (SHARED, DIVIDED, NATIVE)
SECONDS: Final = 20
"""Seconds of a phase."""
QUICK_SECONDS: Final = 6
SETTLING: Final = 4
"""Seconds of a phase before its mean: the burst, and the time until demand has its limit."""
PHASES: Final = ("one producer", "three producers", "two producers", "the proxy of one is killed")
NATIVE_END: Final = "one producer ends"
"""The last phase without a proxy."""
STYLES: Final = ((INK, 3.0, ""), (COLORS[1], 1.5, "2 3"), (COLORS[0], 1.5, "6 3"))
"""The color, width and dashes of the line of each way."""
_SMALL: Final = 1.0
"""Bytes per second that divide nothing by zero."""

Rates = list[list[float]]
"""Bytes per second of each producer, by second."""


def flow(kafka: EmbeddedKafka, way: str, places: Sequence[Reachable], seconds: int) -> Rates:
    """Run the phases; producer k uses places[k] and broker k + 1."""
    topics = [f"{TENANT}-{WAYS.index(way)}-{number}" for number in (1, 2, 3)]
    for number, topic in enumerate(topics, 1):
        make_topic(kafka, topic, on=[[number]], message_timestamp_type="LogAppendTime")
    with ExitStack() as all_producers:
        stacks = [all_producers.enter_context(ExitStack()) for _ in topics]

        def begin(*numbers: int) -> None:
            for number in numbers:
                stacks[number].enter_context(producing(places[number], topics[number], TENANT))

        def end_second() -> None:
            place = places[1]
            if isinstance(place, ProxyProcess):
                place.process.kill()
            stacks[1].close()

        actions: Sequence[Callable[[], object]] = (
            lambda: begin(0),
            lambda: begin(1, 2),
            stacks[2].close,
            end_second,
        )
        began = time.time()
        for phase, action in enumerate(actions, 1):
            action()
            wait_until(partial(_is_over, began + phase * seconds), "the end of the phase", seconds + 60)
    length = len(PHASES) * seconds
    return [[float(size) for size in per_second(appended(kafka, topic), began, length)] for topic in topics]


def proxies(stack: ExitStack, kafka: EmbeddedKafka, folder: Path, way: str) -> list[ProxyProcess]:
    """Start three proxies that share the limit, or of which each has a third."""
    part = 1 if way == SHARED else 3
    quotas = [{"entity": {"client-id": TENANT}, "scope": "cluster", "producer_byte_rate": LIMIT // part}]
    sharing: Any = {"topic": f"{TENANT}-shares"} if way == SHARED else False
    settings = {"quotas": {"store": "none"}, "sharing": sharing}
    made = [
        stack.enter_context(
            ProxyProcess(folder / f"{WAYS.index(way)}-{name}", kafka.bootstrap, quotas, settings=settings)
        )
        for name in "abc"
    ]
    if way == SHARED:
        for proxy in made:
            wait_until(partial(_knows_all, proxy), "three processes that share")
    return made


def _is_over(until: float) -> bool:
    return time.time() >= until


def _knows_all(proxy: ProxyProcess) -> bool:
    return proxy.metric("quota_proxy_instances") == 3


def measure(kafka: EmbeddedKafka, folder: Path, way: str, seconds: int) -> Rates:
    """Run the phases in one way."""
    if way == NATIVE:
        kafka.run_tool(
            "kafka-configs",
            *("--bootstrap-server", kafka.bootstrap, "--alter", "--entity-type", "clients"),
            *("--entity-name", TENANT, "--add-config", f"producer_byte_rate={LIMIT}"),
        )
        return flow(kafka, way, [kafka] * 3, seconds)
    with ExitStack() as stack:
        return flow(kafka, way, proxies(stack, kafka, folder, way), seconds)


def together(rates: Rates) -> list[float]:
    """The sum of the producers, by second."""
    return [sum(each) for each in zip(*rates, strict=True)]


def report(found: dict[str, Rates], seconds: int) -> list[str]:
    """Format as Markdown: for each way and phase, the sum of all producers as a part of the limit."""
    lines = ["| way | phase | mean | coefficient of variation | most in 5 s |", "|---|---|---:|---:|---:|"]
    for way, rates in found.items():
        whole = together(rates)
        for number, phase in enumerate(PHASES):
            name = NATIVE_END if way == NATIVE and number == len(PHASES) - 1 else phase
            part = whole[number * seconds + SETTLING : (number + 1) * seconds]
            mean = fmean(part)
            fives = [fmean(whole[at : at + 5]) for at in range(number * seconds, (number + 1) * seconds - 4)]
            most = max(fives, default=0.0) / LIMIT
            even = pstdev(part) / max(mean, _SMALL)
            lines.append(f"| {way} | {name} | {mean / LIMIT:.3f} | {even:.3f} | {most:.2f} |")
    return lines


def pictures(found: dict[str, Rates], seconds: int) -> dict[str, LineChart]:
    """The rates of each proxy and their sum; and the sums of all ways."""
    marks = [(float(number * seconds), phase) for number, phase in enumerate(PHASES)]
    shared = found[SHARED]
    each = [
        Line(f"through proxy {name}", _millions(rates), color)
        for name, rates, color in zip("abc", shared, COLORS, strict=False)
    ]
    whole = Line("all", _millions(together(shared)), INK, width=3)
    sums = [
        Line(way, _millions(together(rates)), color, width, dashes)
        for (way, rates), (color, width, dashes) in zip(found.items(), STYLES, strict=True)
    ]
    return {
        "sharing-brokers": LineChart(
            "Three proxies, one limit of 1 MB/s", "MB/s", 1.6, [*each, whole], marks
        ),
        "sharing-brokers-compared": LineChart(
            "The sum of three producers, limit 1 MB/s", "MB/s", 3.2, sums, marks
        ),
    }


def _millions(rates: Sequence[float]) -> list[float]:
    return [rate / 1e6 for rate in rates]


def main() -> None:
    """Run the command."""
    parser = bench_parser("sharing.brokers", __doc__)
    parser.add_argument("--pictures", action="store_true", help="write docs/images/sharing-brokers*.svg, too")
    add_quick(parser, f"phases of {QUICK_SECONDS} s")
    options = parser.parse_args()
    seconds = QUICK_SECONDS if options.quick else SECONDS
    page = Page()
    found: dict[str, Rates] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, EmbeddedKafka(brokers=3) as kafka:
        for way in WAYS:
            found[way] = measure(kafka, Path(folder), way, seconds)
            print(f"{way}: done", flush=True)
    if options.pictures:
        for name, chart in pictures(found, seconds).items():
            (PICTURES / f"{name}.svg").write_text(chart.svg())
    page.save(options.name, report(found, seconds))


if __name__ == "__main__":
    main()
