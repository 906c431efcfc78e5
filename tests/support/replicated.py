"""Brokers that fetch from each other through a proxy."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from proxy.demo.broker_properties import INTERNAL
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.ports import free_port_range
from tests.support.proxy_process import BROKERS, HOST, ProxyProcess
from tests.support.topics import describe_topic
from tests.support.waiting import wait_until


class Replicated:
    """`brokers` of them, whose inter-broker listeners are advertised at the proxy's replication listener."""

    def __init__(self, folder: Path, brokers: int, properties: Mapping[str, str] | None = None) -> None:
        base = free_port_range(BROKERS)
        node_ids = range(1, brokers + 1)
        self.kafka: Final = EmbeddedKafka(
            brokers,
            properties=properties,
            advertised={node_id: {INTERNAL: f"{HOST}:{base + node_id}"} for node_id in node_ids},
        )
        self._replication = {
            "name": "replication",
            "replication": True,
            "broker_port_base": base,
            "broker_port_count": BROKERS,
            "upstream": {
                "brokers": {
                    str(node_id): f"{HOST}:{self.kafka.port(node_id, INTERNAL)}" for node_id in node_ids
                }
            },
        }
        self._folder = folder

    def __enter__(self) -> Self:
        self.kafka.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kafka.__exit__(kind, error, trace)

    def proxy(self, name: str = "proxy", **settings: Any) -> ProxyProcess:
        """A proxy, not started yet, with these further top-level keys of its file."""
        return ProxyProcess(
            self._folder / name, self.kafka.bootstrap, settings=settings, more_listeners=[self._replication]
        )

    def in_sync(self, topic: str, partition: int = 0, port: int | None = None) -> set[int]:
        """The ISR, as the first broker knows it."""
        told = describe_topic(port or self.kafka.port(1), topic)
        return set(told.partitions[partition].isr_nodes)

    def wait_in_sync(self, topic: str, partitions: int, replicas: set[int], timeout: float = 60.0) -> None:
        """Wait until these are the replicas in sync of each partition."""
        wait_until(
            lambda: all(self.in_sync(topic, partition) == replicas for partition in range(partitions)),
            f"{topic} in sync on {sorted(replicas)}",
            timeout,
        )
