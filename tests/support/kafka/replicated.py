"""Brokers that fetch from each other through a proxy."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from proxy.demo.kafka.broker_properties import INTERNAL
from proxy.demo.ports import free_port_range
from tests.support.kafka.tool_server import ServedKafka
from tests.support.kafka.topics import describe_topic
from tests.support.process.proxy_process import BROKERS, HOST, ProxyProcess
from tests.support.waiting import wait_until


class Replicated:
    """A cluster of `brokers` brokers whose inter-broker listeners are advertised at the proxy's replication
    listener; those of the brokers `apart` at that of a second proxy.
    """

    def __init__(
        self,
        folder: Path,
        brokers: int,
        properties: Mapping[str, str] | None = None,
        apart: Collection[int] = (),
    ) -> None:
        base = self._base = free_port_range(BROKERS)
        second = self._second_base = free_port_range(BROKERS) if apart else base
        node_ids = range(1, brokers + 1)
        bases = {node_id: second if node_id in apart else base for node_id in node_ids}
        self.kafka: Final = ServedKafka(
            brokers,
            properties=properties,
            advertised={node_id: {INTERNAL: f"{HOST}:{bases[node_id] + node_id}"} for node_id in node_ids},
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
        """Return a proxy that is not started yet; `settings` are further top-level keys of its file."""
        return ProxyProcess(
            self._folder / name, self.kafka.bootstrap, settings=settings, more_listeners=[self._replication]
        )

    def second_proxy(self, name: str = "second", **settings: Any) -> ProxyProcess:
        """The proxy through which the brokers `apart` are reached, not started yet."""
        listener = {**self._replication, "broker_port_base": self._second_base}
        return ProxyProcess(
            self._folder / name, self.kafka.bootstrap, settings=settings, more_listeners=[listener]
        )

    def port(self, node_id: int) -> int:
        """The proxy's port at which the other brokers reach this one."""
        return self._base + node_id

    def complaints(self) -> list[str]:
        """Lines of the brokers' logs about replicas that left the ISR, and about failed fetchers."""
        logs = [self.kafka.log(node_id).read_text(errors="replace") for node_id in self.kafka.node_ids]
        lines = [line for log in logs for line in log.splitlines()]
        return [line for line in lines if "Shrinking ISR" in line or "marked as failed" in line]

    def in_sync(self, topic: str, partition: int = 0, port: int | None = None) -> set[int]:
        """The ISR, as the first broker knows it."""
        told = describe_topic(port or self.kafka.port(1), topic)
        return set(told.partitions[partition].isr_nodes)

    def wait_in_sync(self, topic: str, on: Sequence[Sequence[int]], timeout: float = 60.0) -> None:
        """Wait until the ISR of each partition is this."""
        wanted = {number: set(replicas) for number, replicas in enumerate(on)}

        def found() -> dict[int, set[int]]:
            told = describe_topic(self.kafka.port(1), topic)
            return {int(each.partition_index): set(each.isr_nodes) for each in told.partitions}

        wait_until(lambda: found() == wanted, f"{topic} in sync on {on}", timeout)
