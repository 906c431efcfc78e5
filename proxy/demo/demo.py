"""The demo: three tenants share a real Apache Kafka through the proxy, two of them under quotas.

    alice    produces, at most 1 MiB/s
    bob      produces, at most 2 MiB/s, and consumes, at most 1 MiB/s
    carol    produces and consumes, without a quota

All send and read as fast as they can. The rates are measured at the clients.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from aiokafka.errors import KafkaError
from rich.console import Console

from proxy.demo.demo_report import MIB, TOLERANCE, Result, mib, table
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.embedded_proxy import EmbeddedProxy
from proxy.demo.tenants import CONSUMER, PRODUCER, Flow, make_topics
from proxy.errors import QuotaProxyError

TENANTS: Final[Mapping[str, Mapping[str, int | None]]] = {
    "alice": {PRODUCER: 1 * MIB},
    "bob": {PRODUCER: 2 * MIB, CONSUMER: 1 * MIB},
    "carol": {PRODUCER: None, CONSUMER: None},
}
"""By client id: what each does, and its quota in bytes per second."""

SECONDS: Final = 12
"""Long enough that the burst a tenant may have saved up, one second's worth of its quota, is within
TOLERANCE."""
_START_TIMEOUT: Final = 60.0
"""Seconds until every flow has to be under way."""
_BURSTS: Final = 2
"""A flow is under way once it has transferred so many seconds' worth of its quota: by then it has used up its
initial burst, which is one second's worth."""
_BOUNDED_LOGS: Final = {
    "log.segment.bytes": str(64 * MIB),
    "log.retention.bytes": str(256 * MIB),
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
}
"""Carol is fast, so Kafka keeps only the newest of her records."""


class DemoFailed(QuotaProxyError):
    """The tenants transferred too little to measure."""


def main(keep: bool = False) -> int:
    """Run the demo. Returns 0 if every tenant got its quota, 1 if not, and 130 if the demo was stopped.

    `keep`: then leave the cluster, the proxy and the tenants with a quota running until a signal; returns 0.
    """
    console = Console(highlight=False)
    # Every signal becomes SIGINT, which asyncio turns into a cancellation, so that the `with` blocks below
    # end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    # Clients log every retry while Kafka prepares new topics.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        return _run(console, keep)
    except KeyboardInterrupt:
        print("Stopped; all processes have ended.", file=sys.stderr)
        return 130
    except (QuotaProxyError, KafkaError) as error:
        print(f"quota-proxy demo: {error}", file=sys.stderr)
        return 1


def _run(console: Console, keep: bool) -> int:
    started = time.monotonic()
    console.print("Starting Apache Kafka ...")
    with EmbeddedKafka(properties=_BOUNDED_LOGS) as kafka:
        console.print(f"Kafka {kafka.version} serves at {kafka.bootstrap}. Starting the proxy ...")
        with EmbeddedProxy(kafka.bootstrap, kafka.folder, _quotas()) as proxy:
            ready = time.monotonic() - started
            console.print(f"The proxy serves at {proxy.bootstrap}, {ready:.1f} s after the start.")
            results = asyncio.run(_serve_tenants(proxy, console))
            complaints = _report(results, console)
            if keep and not complaints:
                _keep(proxy, console)
        kafka.keep_folder = bool(complaints)
    if complaints:
        return 1
    if not keep:
        console.print(
            "Try next: make demo KEEP=1 leaves it running, so that you can watch it and change quotas.",
            soft_wrap=True,
        )
    return 0


def _report(results: Sequence[Result], console: Console) -> list[str]:
    """Print the results, and return what is wrong with them."""
    console.print(table(results, plain=not console.is_terminal))
    complaints = [result.complaint for result in results if result.complaint]
    if complaints:
        console.print("\n".join(complaints), style="red")
        return complaints
    console.print(f"Each tenant with a quota got it, within {TOLERANCE:.0%}; carol was never throttled.")
    console.print("A quota is one line of the configuration, under quotas.clients:")
    console.print("  - {entity: {client-id: alice}, producer_byte_rate: 1048576}", markup=False)
    return complaints


def _keep(proxy: EmbeddedProxy, console: Console) -> None:
    """Run the tenants with a quota until a signal."""
    command = os.path.relpath(sys.argv[0])
    change = f"{command} quotas set --bootstrap {proxy.bootstrap}"
    admin = f"http://127.0.0.1:{proxy.admin_port}"
    for line in (
        "",
        "Kafka, the proxy, alice and bob continue until Ctrl-C.",
        f"  page     {admin}/ (its token for changes: {proxy.token})",
        f"  tenants  {command} top --admin {admin}",
        f"  change   {change} --client-id alice producer_byte_rate=3145728",
        f"  clients  bootstrap.servers={proxy.bootstrap}",
    ):
        console.print(line, markup=False, soft_wrap=True)
    with suppress(KeyboardInterrupt):
        asyncio.run(_continue_tenants(proxy))
    console.print("Stopping ...")


async def _continue_tenants(proxy: EmbeddedProxy) -> None:
    flows = [flow for flow in _flows() if flow.limit]
    try:
        async with asyncio.TaskGroup() as clients:
            for flow in flows:
                clients.create_task(flow.run(proxy.bootstrap))
    except ExceptionGroup as failures:
        proxy.check()
        raise failures.exceptions[0] from None


def _flows() -> list[Flow]:
    return [Flow(tenant, key, limit) for tenant, does in TENANTS.items() for key, limit in does.items()]


def _quotas() -> list[dict[str, object]]:
    """The tenants' quotas in the format of quotas.clients in the configuration."""
    limits = {
        tenant: {key: limit for key, limit in does.items() if limit} for tenant, does in TENANTS.items()
    }
    return [{"entity": {"client-id": tenant}, **quotas} for tenant, quotas in limits.items() if quotas]


async def _serve_tenants(proxy: EmbeddedProxy, console: Console) -> list[Result]:
    """Run all clients at the same time, and measure them."""
    flows = _flows()
    await make_topics(proxy.bootstrap, TENANTS)
    try:
        async with asyncio.TaskGroup() as clients:
            running = [clients.create_task(flow.run(proxy.bootstrap)) for flow in flows]
            await _until_under_way(flows, proxy)
            rates = await _measure(flows, proxy, console)
            buckets = await asyncio.to_thread(proxy.quotas)
            for client in running:
                client.cancel()
    except ExceptionGroup as failures:
        proxy.check()
        raise failures.exceptions[0] from None
    waited = {(each["entity"].get("client-id"), each["kind"]): each["throttle_seconds"] for each in buckets}
    return [
        Result(flow, rate, waited.get((flow.tenant, flow.key), 0.0))
        for flow, rate in zip(flows, rates, strict=True)
    ]


async def _until_under_way(flows: Sequence[Flow], proxy: EmbeddedProxy) -> None:
    deadline = time.monotonic() + _START_TIMEOUT
    while waiting := [flow for flow in flows if flow.bytes <= _BURSTS * (flow.limit or 0)]:
        proxy.check()
        if time.monotonic() > deadline:
            raise DemoFailed(f"after {_START_TIMEOUT:.0f} s, {waiting[0]} too little to measure")
        await asyncio.sleep(0.05)


async def _measure(flows: Sequence[Flow], proxy: EmbeddedProxy, console: Console) -> list[float]:
    """Print each flow's rate every second; return each flow's bytes per second over the whole time."""
    console.print(_row("MiB/s", [flow.tenant for flow in flows]))
    console.print(_row("", [flow.verb for flow in flows]))
    started = last = time.monotonic()
    first = before = [flow.bytes for flow in flows]
    for second in range(1, SECONDS + 1):
        await asyncio.sleep(started + second - time.monotonic())
        proxy.check()
        now, counts = time.monotonic(), [flow.bytes for flow in flows]
        console.print(_row(f"{second} s", [mib(rate) for rate in _rates(before, counts, now - last)]))
        before, last = counts, now
    return _rates(first, before, last - started)


def _rates(before: Sequence[int], after: Sequence[int], seconds: float) -> list[float]:
    return [(now - then) / seconds for then, now in zip(before, after, strict=True)]


def _row(heading: str, cells: Sequence[str]) -> str:
    return f"{heading:>6}" + "".join(f"{cell:>10}" for cell in cells)
