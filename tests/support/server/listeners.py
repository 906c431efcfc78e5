"""Listeners as the metrics see them, with counters that a test fills."""

from collections.abc import Iterable, Iterator
from typing import Final

from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic

ID: Final = bytes(range(16))
OTHER_ID: Final = bytes(range(1, 17))


class Names:
    """Names one topic."""

    def topic_name(self, topic_id: bytes) -> str:
        return "by-id" if topic_id == ID else ""

    def want_names(self, topic_ids: Iterable[bytes]) -> None:
        self.wanted = set(topic_ids)


class FilledListener:
    """Fulfils MeteredListener."""

    pause_reasons = ("throttled", "connecting")

    def __init__(self, name: str = "clients", *, between_brokers: bool = False) -> None:
        self.name = name
        self.between_brokers = between_brokers
        self.traffic = Traffic(topic_partitions=True)
        self.usage: UsageLedger | None = None
        self.topic_names = Names()
        self.closed = {"idle": 2}
        self.connection_count = 3
        self.paused = ["throttled", "", "throttled"]
        self.brokers_without_port = 1
        self.rejected_addresses = 6
        self.broker_connects = {(1, "failed"): 4}

    def pauses(self) -> Iterator[str]:
        return iter(self.paused)
