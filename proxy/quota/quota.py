"""Quota: the state and rules of a kind of quota. QuotaKind: its description."""

import math
from collections.abc import Callable
from typing import Final, final

from mypy_extensions import mypyc_attr

from proxy.quota.cluster_view import ClusterView
from proxy.quota.config_check import ConfigCheck
from proxy.quota.fetch.consumer_plan import ConsumerPlan
from proxy.quota.fetch.follower_plan import FollowerPlan
from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import LONG, ConfigKey
from proxy.quota.limits.scopes import BROKER_SCOPE, CLUSTER_SCOPE
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.buckets import Buckets
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.views import Item, RequestView, ResponseView

INT: Final = "INT"
DOUBLE: Final = "DOUBLE"
PER_BROKER: Final = BROKER_SCOPE
"""Each broker has its own state, as with Kafka's quotas."""
PER_CLUSTER: Final = CLUSTER_SCOPE
"""All brokers share one state."""

_LARGEST: Final[dict[str, int]] = {
    LONG: 2**63,
    INT: 2**31 - 1,
    DOUBLE: int(math.nextafter(math.inf, 0.0)),
}
"""AlterClientQuotas has doubles: 2^63 - 1, which some set as "no limit", arrives as 2^63."""
_FRACTION: Final = 1e-6
"""How far a LONG or INT may be above a whole number: AlterClientQuotas has doubles, and Kafka allows this
(ClientQuotaControlManager).
"""


@mypyc_attr(allow_interpreted_subclasses=True)
class Quota:
    """The base class of quotas: it allows everything. A kind overrides the methods that it needs.

    A verdict other than ALLOW has to name its bucket: if that is observed, the engine counts the wait and
    does not enforce it. The engine does not call a quota for exempt clients.

    A PER_CLUSTER quota belongs to several engines, so configure() may be called twice with the same limits.
    """

    def __init__(
        self,
        api_keys: tuple[int, ...],
        *,
        only_admits: tuple[int, ...] = (),
        only_charges: tuple[int, ...] = (),
        intercepts: bool = False,
        limited_api_keys: tuple[int, ...] = (),
    ) -> None:
        self.api_keys: Final = api_keys
        """The keys of the APIs for which the engine calls this quota."""
        self.only_admits: Final = only_admits
        """Those of them for which charge() does nothing, so that the engine does not call it."""
        self.only_charges: Final = only_charges
        """Those of them for which admit() does nothing."""
        self.intercepts: Final = intercepts
        """Whether the proxy responds to such requests itself. The code that responds calls the quota."""
        self.limited_api_keys: Final = limited_api_keys
        """The APIs to which the proxy responds itself only if limits() is true for the client."""
        self.active = True
        """Whether any such quota is configured. If not, the engine does not call this object. configure()
        sets it.
        """
        self.wants_partitions = False
        """Whether the quota needs the cluster's partitions; configure() sets it."""
        self.node_id = -1
        """The broker of the quota; -1 if brokers share it."""
        self.threads = 0
        """How many threads of the broker work on requests; 0 if that is not known, or if brokers share it."""
        self.scope = ""
        """The only scope of the limits that configure() gets; empty for both."""
        self.omits = False
        """Whether the quota may omit partitions of fetches: see proxy.quota.fetch.plan.
        configure() sets it.
        """
        self.limits_fetches = False
        """Whether limit_fetch() does anything. configure() sets it."""
        self.rejects = False
        """Whether the quota may reject partitions of Produce requests. configure() sets it, and then adds
        Produce to item_api_keys.
        """
        self.limits_topics = False
        """Whether the quota limits Produce requests by topic, so that it needs the topics' names. configure()
        sets it.
        """
        self.limits_time = False
        """Whether it charges the time that brokers work on requests."""
        self.item_api_keys: tuple[int, ...] = ()
        """The APIs for which the quota needs the items of requests and responses; configure() sets it.
        Messages of other APIs may have no items.
        """

    def join(self, node_id: int, peers: list["Quota"]) -> None:
        """Set the broker of the quota. Called first, and only for PER_BROKER kinds.

        `peers`: the same kind's quotas of other brokers, with which it can share state.
        """
        self.node_id = node_id

    def connect(self, address: str, now: float) -> Verdict:
        """Charge a new connection from an address; `throttle_seconds` delays its first request.

        If the verdict `closes`, nothing is charged.
        """
        return ALLOW

    def give_back_connection(self, address: str, now: float) -> None:
        """Take back the charge of a connection that has ended before it was served."""

    def limits(self, who: Identity, now: float) -> bool:
        """Whether a client has a limit; only asked for limited_api_keys."""
        return False

    def owed(self, who: Identity, now: float) -> Bucket | None:
        """Return the bucket whose debt a client's first request on a connection waits for; None if it does
        not wait. For quotas that charge a request only after it has been forwarded.
        """
        return None

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        """Charge a request before it is forwarded. Not called for APIs that the relay does not read
        (proxy.wire.apis.registry).
        """
        return ALLOW

    def give_back_request(self, request: RequestView, items: list[Item], who: Identity, now: float) -> None:
        """Take back what admit() has charged for a Produce request that is not forwarded after all.

        `items`: all that have been charged.
        """

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        """Charge a response of the broker, before it is forwarded."""
        return ALLOW

    def limit_fetch(self, request: RequestView, who: Identity, grant: FetchGrant, now: float) -> None:
        """Add the buckets to which the response to a consumer's Fetch or ShareFetch will be charged to
        `grant.places`, or bound the response.
        """

    def withholds(
        self, request: RequestView, response: ResponseView, who: Identity, grant: FetchGrant, now: float
    ) -> Bucket | None:
        """Return a bucket of a Fetch response's items that limit_fetch() did not know, and that has no bytes
        for them, so that the client gets an empty response; None if there is none.
        """
        return None

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        """Whether, under the current limits, the quota may ever omit this partition from this client's
        fetches.

        `replica_id` is a follower's node id, or -1 for consumers. For a consumer, the result depends only on
        the topic.
        """
        return False

    def plan_consumer_fetch(self, plan: ConsumerPlan, who: Identity, now: float) -> None:
        """Omit partitions from a consumer's fetch, or limit their bytes. `plan.items` has every partition
        that this or another quota may omit.
        """

    def plan_follower_fetch(self, plan: FollowerPlan, who: Identity, now: float) -> None:
        """Omit partitions from a follower's fetch, or limit their bytes. `plan.items` has the partitions
        about which something has changed since the session's last plan.
        """

    def rejects_now(self, now: float) -> bool:
        """Whether reject() may add partitions at this time. It is asked first, for each request."""
        return True

    def reject(self, items: list[Item], over: dict[int, Bucket], now: float) -> None:
        """Add the partitions of a Produce request that are rejected to `over`: index in `items` -> the bucket
        that is over its limit. Other quotas have rejected the partitions that `over` already has. Called
        before admit().
        """

    def charge_items(self, request: RequestView, items: list[Item], who: Identity, now: float) -> Verdict:
        """Charge items of a large frame that arrive after admit() or charge() has been called for the frame:
        items of the request for Produce, of the response for other APIs.
        """
        return ALLOW

    def configure(self, limits: Limits, now: float) -> None:
        """Set new limits. The usage so far still counts."""

    def see_cluster(self, view: ClusterView, now: float) -> None:
        """Take the cluster's metadata. Called after each change, and every second if `wants_partitions`.

        It may be out of date, and at first it may lack the partitions.
        """

    def buckets(self) -> list[Buckets]:
        """The buckets of client quotas, in a fixed order."""
        return []

    def begin_with(self, first_parts: FirstParts) -> None:
        """Have buckets that are made from now on begin with these parts of their limits."""
        for buckets in self.buckets():
            buckets.first_parts = first_parts

    def review_every(self, seconds: float) -> None:
        """Take the longest wait that may be announced: limits may grow at any moment. Only a quota that
        engines do not call needs it.
        """

    def live(self) -> list[Bucket]:
        """Every bucket that has been used and has a limit."""
        return []

    def shared_buckets(self, now: float) -> list[Bucket]:
        """The buckets whose limits are divided among processes."""
        return self.live()

    def forget_idle(self, now: float) -> bool:
        """Drop the state that has not been used for an hour, as Kafka does. Return whether that is not done,
        because other work has its turn: then it is called again.
        """
        return False


@final
class QuotaKey:
    """The name of a quota and its valid values, as in AlterClientQuotas (KIP-546)."""

    __slots__ = ("for_ip", "help", "name", "type")

    def __init__(self, name: str, type: str, *, for_ip: bool = False, help: str = "") -> None:
        self.name: Final = name
        self.type: Final = type
        """LONG, INT or DOUBLE, as Kafka names them."""
        self.for_ip: Final = for_ip
        """Whether it is a quota of ip entities, and not of users and client ids."""
        self.help: Final = help
        """What the quota limits, for the documentation."""

    def misplaced(self, entity: QuotaEntity) -> str:
        """Why an entity cannot have this quota; empty if it can."""
        if self.for_ip == (entity.ip is not None):
            return ""
        whose = "an ip" if self.for_ip else "users and client ids"
        return f"{self.name} is a quota of {whose}; {entity} cannot have it"

    def problem(self, value: object) -> str:
        """Why a value is invalid; empty if it is valid."""
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
    """The description of a kind of quota. Configuration, admin APIs and metrics are derived from it."""

    def __init__(
        self,
        *,
        name: str,
        keys: tuple[QuotaKey, ...],
        scope: str,
        build: Callable[[], Quota],
        configs: tuple[ConfigKey, ...] = (),
        check: type[ConfigCheck] | None = None,
        between_brokers: bool = False,
    ) -> None:
        self.name: Final = name
        self.keys: Final = keys
        """The quotas of users, client ids and addresses of this kind."""
        self.configs: Final = configs
        """The configs of topics and brokers of this kind."""
        self.check: Final = check
        """Checks whether its configs contradict each other; None if they cannot."""
        self.between_brokers: Final = between_brokers
        """Whether the kind applies to requests of brokers, and not to those of clients."""
        self.scope: Final = scope
        """PER_BROKER or PER_CLUSTER."""
        self.build: Final = build
        """Makes a Quota of this kind, without limits."""
