"""Replication throttles: the configs that set them, and what a proxy and a cluster show of them."""

import statistics
import time
from typing import Any, Final

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.rates import uneven
from tests.support.process.proxy_process import ProxyProcess

LISTS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def configs(bootstrap: str, kind: ResourceType, name: str) -> dict[str, str]:
    """The values of a topic or broker that are set."""
    resource = ConfigResource(kind, name)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_configs([resource])[resource].result(30)
    return {key: entry.value for key, entry in found.items() if entry.value and not entry.is_default}


def set_configs(proxy: ProxyProcess, kind: ResourceType, *names: str, **values: str | None) -> None:
    """Set these configs of topics or brokers, or remove those that are None; `_` stands for a dot."""
    entries = [
        ConfigEntry(
            key.replace("_", "."),
            value or "",
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in values.items()
    ]
    admin = AdminClient({"bootstrap.servers": proxy.bootstrap})
    for name in names:
        resource = ConfigResource(kind, name, incremental_configs=entries)
        admin.incremental_alter_configs([resource])[resource].result(30)


def set_brokers(proxy: ProxyProcess, **values: str | None) -> None:
    """Set these configs of every broker."""
    set_configs(proxy, ResourceType.BROKER, "1", "2", "3", **values)


def ms_from_now(seconds: float) -> str:
    """As `expires.at.ms` takes it."""
    return str(int((time.time() + seconds) * 1000))


def row(proxy: ProxyProcess, side: str, broker: int) -> dict[str, Any]:
    """What /api/quotas shows of one side of a broker."""
    kind = f"{side}.replication.throttled.rate"
    (found,) = [row for row in proxy.buckets() if row["kind"] == kind and row["broker"] == broker]
    return found


def throttled_bytes(proxy: ProxyProcess, side: str, broker: str) -> float:
    """The counter of one side of a broker."""
    return proxy.metric(f"quota_proxy_{side}_replication_throttled_bytes_total", broker=broker)


def on_disk(kafka: EmbeddedKafka, topic: str, broker: int) -> int:
    """Bytes of a topic's batches that a broker has."""
    data = kafka.folder / f"node-{broker}" / "data"
    return sum(file.stat().st_size for file in data.glob(f"{topic}-*/*.log"))


def even(seconds: list[float], rate: int, pauses: float) -> None:
    """Every second is near the throttle, and no five together are far above; for the rest, the machine
    paused.
    """
    shown = f"{seconds}; pauses: {pauses:.2f} s"
    count = len(seconds)
    assert statistics.mean(seconds) == pytest.approx(rate, rel=0.1 + pauses / count), shown
    variation = statistics.pstdev(seconds) / statistics.mean(seconds)
    assert variation < 0.3 + uneven(pauses, count), shown
    most = (5 * 1.25 + pauses) * rate
    assert all(sum(seconds[at : at + 5]) <= most for at in range(count - 4)), shown
