"""MeteredListener: what a listener shows to the metrics."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.telemetry.topic_name_lookup import TopicNameLookup


class MeteredListener(Protocol):
    """A listener's counters, which are read at each scrape and only there."""

    @property
    def name(self) -> str:
        """The label `listener`."""

    @property
    def between_brokers(self) -> bool:
        """Whether the clients are brokers that replicate; their traffic is no tenant's."""

    @property
    def traffic(self) -> Traffic:
        """The counters of requests and bytes."""

    @property
    def usage(self) -> UsageLedger | None:
        """What each client uses; None if usage is not reported."""

    @property
    def topic_names(self) -> TopicNameLookup:
        """The names of the topics that requests name by id."""

    @property
    def closed(self) -> Mapping[str, int]:
        """Connections that have ended, by reason."""

    @property
    def connection_count(self) -> int:
        """Client connections that are open."""

    @property
    def pause_reasons(self) -> Sequence[str]:
        """All reasons for which a client is not read from."""

    def pauses(self) -> Iterator[str]:
        """For each open connection: why its client is not read from; empty if it is."""

    @property
    def broker_connects(self) -> Mapping[tuple[int, str], int]:
        """Attempts to connect to a broker, by node id and outcome."""

    @property
    def brokers_without_port(self) -> int:
        """Brokers that clients cannot reach, because no port could be bound for them."""

    @property
    def rejected_addresses(self) -> int:
        """How often upstream.hosts did not allow the address of a broker."""
