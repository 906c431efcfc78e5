"""`python -m tests.interop.run [CLIENT ...]`: clients of other languages through the proxy, on a real Kafka.

Each sends numbered messages and reads them back as a consumer group: first without a quota, then with a quota
of 1 MiB/s on its client id, then to partitions that reject traffic over their quota. Exit status 1 if a
message was lost, came twice or out of order, if a client failed or did not keep to its quota, or if none
could run.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.interop.clients import CLIENTS, Client, LeftOut
from tests.interop.journey import Journey, Leg, Load
from tests.support.process.proxy_process import ProxyProcess

MIB: Final = 1 << 20
LOADS: Final = (
    Load("free", count=20_000, size=100, quota=None),
    Load("quota", count=8 * 1024, size=1024, quota=1 * MIB),
    Load("rejected", count=12 * 1024, size=1024, quota=None, rejected_beyond=MIB // 4),
)
COLUMNS: Final = ("client", "load", "", "seconds", "MiB/s", "throttled", "client saw a wait")


def prepare(names: Sequence[str], console: Console) -> list[Client]:
    """The clients that can run here, of those that are named or of all."""
    clients: list[Client] = []
    for kind in CLIENTS:
        if names and kind.name.lower() not in (name.lower() for name in names):
            continue
        try:
            clients.append(kind())
        except LeftOut as reason:
            console.print(f"{kind.name} is skipped: {reason}")
    return clients


def quotas(clients: Iterable[Client]) -> list[dict[str, object]]:
    """The configuration's quotas.clients."""
    return [
        {
            "entity": {"client-id": f"{client.name}-{load.name}".lower()},
            "producer_byte_rate": load.quota,
            "consumer_byte_rate": load.quota,
        }
        for client in clients
        for load in LOADS
        if load.quota
    ]


def topics(clients: Iterable[Client]) -> dict[str, object]:
    """The configuration's quotas.topics."""
    return {
        f"{client.name}-{load.name}".lower(): {
            "producer.byte.rate": load.rejected_beyond,
            "producer.byte.rate.action": "reject",
        }
        for client in clients
        for load in LOADS
        if load.rejected_beyond
    }


def main(names: Sequence[str]) -> int:
    console = Console(highlight=False)
    clients = prepare(names, console)
    shown = Table(box=box.ASCII2)
    for column in COLUMNS:
        shown.add_column(column, justify="right" if column in ("seconds", "MiB/s", "throttled") else "left")
    failures: list[str] = []
    with (
        EmbeddedKafka() as kafka,
        ProxyProcess(
            kafka.folder / "proxy",
            kafka.bootstrap,
            quotas(clients),
            settings={"quotas": {"topics": topics(clients)}},
        ) as proxy,
    ):
        for client in clients:
            for load in LOADS:
                console.print(f"{client.name} {client.version}: {load.count} messages of {load.size} bytes")
                try:
                    legs = Journey(kafka, proxy, client, load, kafka.folder).run()
                except AssertionError as failure:
                    failures.append(f"{client.name}, {load.name}: {failure}")
                    continue
                for leg in legs:
                    shown.add_row(client.name, load.name, *cells(leg, load))
        failures += [f"the proxy's log: {line}" for line in proxy.log_lines("connection closed")]
        kafka.keep_folder = bool(failures)
    console.print(shown)
    console.print("\n".join(failures), markup=False)
    return 1 if failures or not clients else 0


def cells(leg: Leg, load: Load) -> tuple[str, ...]:
    rate = f"{load.bytes / leg.seconds / MIB:.2f}"
    waits = [wait for wait in leg.waits if wait > 0]
    told = f"{len(waits)} times, {sum(waits) / 1000:.1f} s" if waits else "never"
    return leg.verb, f"{leg.seconds:.2f}", rate, f"{leg.throttle_seconds:.1f} s", told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
