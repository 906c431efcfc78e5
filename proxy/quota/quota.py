"""Quota: what a kind of quota does; QuotaKind: what a kind says about itself."""

import math
from collections.abc import Callable
from typing import Final, final

from mypy_extensions import mypyc_attr

from proxy.quota.cluster_view import ClusterView
from proxy.quota.fetch_plan import FetchPlan
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import ConfigKey, Resources
from proxy.quota.measure.bucket import Bucket
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.views import Item, RequestView, ResponseView

LONG: Final = "LONG"
INT: Final = "INT"
DOUBLE: Final = "DOUBLE"
PER_BROKER: Final = "broker"
"""Each broker has its own state, as every quota of Kafka's."""
PER_CLUSTER: Final = "cluster"
"""All brokers share one state."""

_LARGEST: Final[dict[str, int]] = {
    LONG: 2**63 - 1,
    INT: 2**31 - 1,
    DOUBLE: int(math.nextafter(math.inf, 0.0)),
}
_FRACTION: Final = 1e-6
"""What Kafka overlooks in a whole number, which comes to it as a double."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Quota:
    """The state and rules of one kind of quota. A kind overrides what it needs; the rest passes everything.

    A verdict that is not ALLOW names the bucket that it comes from: the engine drops what an observed bucket
    says, and whoever is exempt is not asked about at all.

    One instance may serve several brokers (PER_CLUSTER), so configure() may come twice with the same limits.
    """

    def __init__(self, api_keys: tuple[int, ...], *, intercepts: bool = False) -> None:
        self.api_keys: Final = api_keys
        """The APIs (Kafka's keys) whose requests and responses this quota is asked about."""
        self.intercepts: Final = intercepts
        """Whether such a request is handed out whole, to somebody who asks the quota and answers it."""
        self.active = True
        """Whether anybody has such a quota now, so that asking can do anything; configure() sets it."""
        self.wants_partitions = False
        """Whether it has to know the cluster's partitions now; configure() sets it."""
        self.node_id = -1
        """The broker that it belongs to; -1 where brokers share it."""
        self.omits = False
        """Whether it may hold partitions of fetches back now: see proxy.quota.fetch_plan; configure() sets
        it.
        """
        self.rejects = False
        """Whether it may reject partitions of Produce requests now, of which it then knows the items;
        configure() sets it.
        """
        self.item_api_keys: tuple[int, ...] = ()
        """The APIs of whose requests and responses it has to know the items now; configure() sets it. Others
        may come without.
        """

    def join(self, node_id: int, peers: list["Quota"]) -> None:
        """Become this broker's, before anything else is said; PER_BROKER only.

        `fellows`: the quotas of the same kind of the brokers before, with whom it may share what it knows.
        """
        self.node_id = node_id

    def connect(self, address: str, now: float) -> Verdict:
        """Judge a new connection from an address; `throttle_seconds` is how late it is served."""
        return ALLOW

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        """Judge a request when it has been read, before it goes to the broker."""
        return ALLOW

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        """Judge a response when it has come from the broker, before it goes to the client."""
        return ALLOW

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        """Whether it may ever hold this partition of this client back, as long as the limits are these.

        `replica_id` is a follower's node id, -1 for consumers.
        """
        return False

    def plan_fetch(self, plan: FetchPlan, who: Identity, now: float) -> None:
        """Say what a fetch has to leave out now, and how much of the rest may come.

        `plan.items` are the partitions for which some quota has said may_omit(): perhaps another one.
        """

    def reject(self, items: list[Item], over: dict[int, Bucket], now: float) -> None:
        """Say which partitions of a Produce request do not go on, before it is admitted: by their places in
        `items`, each with the bucket that is over. What is in `over` already is rejected by another quota.
        """

    def charge_items(self, request: RequestView, items: list[Item], who: Identity, now: float) -> Verdict:
        """Judge items of a large request or of the response to it, that are there only after admit() or
        charge() has judged the frame; of a Produce request they are the request's, else the response's.
        """
        return ALLOW

    def configure(self, limits: Limits, now: float) -> None:
        """Take new limits; what was used so far still counts."""

    def see_cluster(self, view: ClusterView, now: float) -> None:
        """Take what is known of the cluster now; with its partitions, every second, where they are wanted.

        The view may be older than its brokers' latest changes, or lack the partitions at first.
        """

    def live(self) -> list[Bucket]:
        """Every bucket that has been used and has a limit."""
        return []

    def forget_idle(self, now: float) -> None:
        """Drop the state that nobody has used for an hour, as Kafka does."""


@final
class QuotaKey:
    """A quota's name and the values that it takes, as in AlterClientQuotas (KIP-546)."""

    __slots__ = ("for_ip", "name", "type")

    def __init__(self, name: str, type: str, *, for_ip: bool = False) -> None:
        self.name: Final = name
        self.type: Final = type
        """LONG, INT or DOUBLE, as Kafka names them."""
        self.for_ip: Final = for_ip
        """Whether only ip entities have it; else only users and client ids do."""

    def misplaced(self, entity: QuotaEntity) -> str:
        """Why an entity cannot have this quota, in a sentence; empty when it can."""
        if self.for_ip == (entity.ip is not None):
            return ""
        whose = "an ip" if self.for_ip else "users and client ids"
        return f"{self.name} is a quota of {whose}; {entity} cannot have it"

    def problem(self, value: object) -> str:
        """What is wrong with a value, in a sentence; empty when it is fine."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"{self.name} is {value!r}; it must be a number greater than 0"
        if not value > 0:
            return f"{self.name} is {value!r}; it must be greater than 0"
        if value > _LARGEST[self.type]:
            return f"{self.name} is {value!r}; it is too large for Kafka's {self.type}"
        if self.type != DOUBLE and value - math.floor(value) > _FRACTION:
            return f"{self.name} is {value!r}; it must be a whole number"
        return ""


@final
class QuotaKind:
    """What a kind of quota says about itself; settings, admin APIs, metrics and docs are made from it."""

    def __init__(
        self,
        *,
        name: str,
        keys: tuple[QuotaKey, ...],
        api_keys: tuple[int, ...],
        scope: str,
        build: Callable[[], Quota],
        help: str,
        configs: tuple[ConfigKey, ...] = (),
        conflict: Callable[[Resources], str] | None = None,
        between_brokers: bool = False,
    ) -> None:
        self.name: Final = name
        self.keys: Final = keys
        """The quotas of clients that can be configured, by Kafka's names."""
        self.configs: Final = configs
        """The configs of topics and brokers that are quotas of this kind."""
        self.conflict: Final = conflict
        """Why topics and brokers cannot have such configs together, in a sentence; empty when they can. Asked
        before a change of them is taken.
        """
        self.between_brokers: Final = between_brokers
        """Whether it is about what brokers ask of each other, and of nobody else."""
        self.api_keys: Final = api_keys
        """The APIs that it is about; none where it is about connections."""
        self.scope: Final = scope
        """PER_BROKER or PER_CLUSTER."""
        self.build: Final = build
        """Makes a Quota of this kind, without limits until it is configured."""
        self.help: Final = help
        """One sentence for people."""
