"""The values that the page of the report shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final

Key = tuple[str, str, str]
"""The cluster, the user and the client id of a tenant."""
Period = tuple[datetime, datetime]
"""UTC; the end is exclusive."""
OTHERS: Final = "others"
"""The label of all tenants without a color of their own. No tenant has it (pipeline.report.labels)."""


@dataclass(frozen=True, slots=True)
class Hour:
    """The bytes of a tenant in an hour; OTHERS stands for all tenants without a color."""

    hour: datetime
    tenant: str
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class Bound:
    """What a quota did to a tenant over all hours."""

    tenant: str
    quota: str
    throttled_requests: int
    throttle_ms: int
    rejected_requests: int
    rejected_bytes: int


@dataclass(frozen=True, slots=True)
class Headroom:
    """The use of a bucket and its limit, in bytes/s on the busiest broker."""

    tenant: str
    quota: str
    limit: float
    p99_rate: float
    max_rate: float


@dataclass(frozen=True, slots=True)
class Topic:
    """The bytes of a topic's records, and the number of tenants and partitions; the name is empty for the
    traffic without a topic.
    """

    name: str
    bytes_in: int
    bytes_out: int
    tenants: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Use:
    """What a tenant used in a period. `amount` and `partition_hours` are None if there are no prices."""

    bytes_in: int = 0
    bytes_out: int = 0
    requests: int = 0
    partition_hours: int | None = None
    amount: Decimal | None = None

    @property
    def size(self) -> int:
        """Bytes in both directions."""
        return self.bytes_in + self.bytes_out


@dataclass(frozen=True, slots=True)
class Before:
    """The use of the period before, by tenant. `billed`: whether the amounts are those of a bill that was
    written; they are otherwise computed from the events with the prices of this report.
    """

    period: Period
    uses: Mapping[Key, Use]
    billed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an invoice: an item of the price file, or a tier of it."""

    item: str
    quantity: Decimal
    unit: str
    price: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Invoice:
    """What a tenant pays for its use of a cluster; the lines add up to the amount. `before` is None if
    nothing is known of the period before.
    """

    tenant: str
    cluster: str
    user: str
    client_id: str
    lines: Sequence[Line]
    use: Use
    before: Use | None = None
    name: str = ""
    cost_center: str = ""


@dataclass(frozen=True, slots=True)
class Charge:
    """What a tenant pays for its use of a cluster. `invoice` is the number of its invoice in the page; 0 if
    the page has none.
    """

    cluster: str
    tenant: str
    amount: Decimal
    partition_hours: int
    cost_center: str = ""
    invoice: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """The content of the page. `throttle_hours` is the throttle time in ms, and `rejected_hours` the number
    of rejected requests, by quota and hour.
    """

    clusters: Sequence[str]
    hours: Sequence[Hour]
    bound: Sequence[Bound]
    throttle_hours: Mapping[str, Mapping[datetime, float]]
    rejected_hours: Mapping[str, Mapping[datetime, float]] = field(default_factory=dict)
    charges: Sequence[Charge] = ()
    invoices: Sequence[Invoice] = ()
    has_cost_centers: bool = False
    currency: str = ""
    headroom: Sequence[Headroom] = ()
    topics: Sequence[Topic] = ()
    """The largest topics, the largest first."""
    topic_count: int = 0
    bad_events: int = 0
    contradicting: int = 0
    """Events that differ from an earlier one with the same identity."""
    tenants: Mapping[Key, Use] = field(default_factory=dict)
    """The use of each tenant, the largest first."""
    several: bool = False
    """Whether the tenants of both periods are of several clusters, so that their labels need its name."""
    before: Before | None = None
    period: Period | None = None
