"""QuotaEngines: the quota engines of all brokers."""

from typing import Final, final

from proxy.quota.cluster_view import NOTHING_KNOWN, ClusterView
from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.scopes import BROKER_SCOPE, CLUSTER_SCOPE
from proxy.quota.measure.bucket import Bucket
from proxy.quota.quota import PER_CLUSTER, Quota, QuotaKind
from proxy.quota.sharing.first_parts import SharedFirstParts
from proxy.quota.sharing.sharing import Sharing
from proxy.quota.sharing.waterfill import RESERVE

ALL_BROKERS: Final = -1
"""The node id of a bucket that all brokers share."""
_NO_QUOTAS: Final[list[Quota]] = []


@final
class QuotaEngines:
    """Two engines per broker: one for clients, and one for other brokers. They are created when the broker
    first appears in the metadata. A PER_CLUSTER quota belongs to all of them.

    A PER_BROKER kind of client quotas has one quota per broker for the scope `broker`, and one in all engines
    for the scope `cluster`.
    """

    def __init__(self, kinds: list[QuotaKind], limits: Limits) -> None:
        self._kinds: Final = kinds
        self._limits = limits
        self._view = NOTHING_KNOWN
        self._review_seconds = UNLIMITED
        self._sharing: Sharing | None = None
        self._first_parts: Final[dict[tuple[int, bool], SharedFirstParts]] = {}
        """By node id, and whether they are of a kind between brokers."""
        self._joining = False
        """Whether brokers may be served before the other processes know this one."""
        self._shared: Final[dict[str, Quota]] = {}
        self._peers: Final[dict[str, list[Quota]]] = {}
        """The quotas of each PER_BROKER kind, by the name of the kind."""
        self._engines: Final[dict[int, QuotaEngine]] = {}
        self._between_brokers: Final[dict[int, QuotaEngine]] = {}
        self._forgetting: list[QuotaEngine] = []
        """The engines with which forget_idle() has not done."""

    def engine(self, node_id: int, now: float) -> QuotaEngine:
        """The broker's engine for clients, with the limits in force."""
        engine = self._engines.get(node_id)
        if engine is None:
            engine = self._make(node_id, False)
            engine.configure(self._limits, now)
            engine.see_cluster(self._view, now)
            self._engines[node_id] = engine
        return engine

    def between_brokers(self, node_id: int, now: float) -> QuotaEngine:
        """The broker's engine for other brokers. Exemptions do not apply to them."""
        engine = self._between_brokers.get(node_id)
        if engine is None:
            engine = self._make(node_id, True)
            engine.configure(self._limits.without_exemptions(), now)
            engine.see_cluster(self._view, now)
            self._between_brokers[node_id] = engine
        return engine

    def _make(self, node_id: int, between_brokers: bool) -> QuotaEngine:
        kinds = [kind for kind in self._kinds if kind.between_brokers == between_brokers]
        engine = QuotaEngine([quota for kind in kinds for quota in self._quotas(kind, node_id)])
        engine.review_every(self._review_seconds)
        return engine

    def _all(self) -> list[tuple[int, QuotaEngine]]:
        return [*self._engines.items(), *self._between_brokers.items()]

    def _quotas(self, kind: QuotaKind, node_id: int) -> list[Quota]:
        if kind.scope == PER_CLUSTER:
            return [self.shared(kind)]
        quota = kind.build()
        peers = self._peers.setdefault(kind.name, [])
        quota.join(node_id, peers)
        quota.begin_with(self._first_parts_of(node_id, kind.between_brokers))
        peers.append(quota)
        if not kind.keys:
            return [quota]
        over_brokers = self.shared(kind)
        over_brokers.scope = CLUSTER_SCOPE
        quota.scope = BROKER_SCOPE
        for own, whole in zip(quota.buckets(), over_brokers.buckets(), strict=True):
            own.inherit_from(whole)
            whole.inherit_from(own)
        return [quota, over_brokers]

    @property
    def wants_items(self) -> bool:
        """Whether any quota needs the items of requests, and therefore the names of topics."""
        return any(engine.any_items for _, engine in self._all())

    @property
    def wants_partitions(self) -> bool:
        """Whether any quota needs the cluster's partitions."""
        return any(engine.wants_partitions for _, engine in self._all())

    def see_cluster(self, view: ClusterView, now: float) -> None:
        """Give the cluster's metadata to all engines, and create those of new brokers."""
        self._view = view
        for node_id in view.nodes:
            self.engine(node_id, now)
            self.between_brokers(node_id, now)
        for _, engine in self._all():
            engine.see_cluster(view, now)

    @property
    def limits_time(self) -> bool:
        """Whether any quota charges the time that brokers work on requests."""
        return any(engine.charges_time for engine in self._engines.values())

    def see_threads(self, node_id: int, threads: int) -> None:
        """Tell the quotas how many threads of a broker work on requests; 0: that is not known."""
        engine = self._engines.get(node_id)
        if engine is not None:
            engine.see_threads(node_id, threads)

    def shared(self, kind: QuotaKind) -> Quota:
        """The quota that brokers share. It has no limits until there is an engine."""
        quota = self._shared.get(kind.name)
        if quota is None:
            quota = kind.build()
            quota.begin_with(self._first_parts_of(ALL_BROKERS, kind.between_brokers))
            self._shared[kind.name] = quota
        return quota

    def of_kind(self, kind: QuotaKind) -> list[Quota]:
        """The quotas of a PER_BROKER kind, one per broker; read-only."""
        return self._peers.get(kind.name, _NO_QUOTAS)

    def engines(self) -> dict[int, QuotaEngine]:
        """The engines for clients by node id; read-only."""
        return self._engines

    def active(self) -> list[tuple[int, Quota]]:
        """Every quota that has limits, with its broker's node id, those that brokers share first.

        To show all buckets without a long pause, the caller asks one quota after the other for live(), and
        calls state(now) in slices; a bucket may change or be dropped in between.
        """
        shared = list(self._shared.values())
        active = [(ALL_BROKERS, quota) for quota in shared if quota.active]
        for node_id, engine in self._all():
            active.extend([(node_id, quota) for quota in engine.active if quota not in shared])
        return active

    def shared_buckets(self, now: float) -> list[Bucket]:
        """The buckets of all brokers whose limits are divided among processes."""
        return [bucket for _, quota in self.active() for bucket in quota.shared_buckets(now)]

    def configure(self, limits: Limits, now: float) -> None:
        """Set new limits in all engines, and for engines that are created later."""
        self._limits = limits
        for engine in self._engines.values():
            engine.configure(limits, now)
        if self._between_brokers:
            without_exemptions = limits.without_exemptions()
            for engine in self._between_brokers.values():
                engine.configure(without_exemptions, now)

    def review_every(self, seconds: float) -> None:
        """Set QuotaEngine.review_every() in all engines, and for engines that are created later."""
        if seconds != self._review_seconds:
            self._review_seconds = seconds
            for _, engine in self._all():
                engine.review_every(seconds)

    def share_by(self, sharing: Sharing) -> None:
        """Have buckets that are made from now on begin with the parts that the log gives to this process."""
        if sharing is not self._sharing:
            self._sharing = sharing
            self._joining = False
            for first_parts in self._first_parts.values():
                first_parts.sharing = sharing

    def begin_joining(self) -> None:
        """Have the limits of brokers begin with the reserve: brokers are served before the other processes
        know this one, and these may use the whole limits meanwhile. To be called before there is an engine.
        """
        self._joining = True

    def use_whole(self, now: float) -> None:
        """End begin_joining() with the whole limits, because this process knows of no other one."""
        if not self._joining:
            return
        self._joining = False
        for first_parts in self._first_parts.values():
            first_parts.without_sharing = 1.0
        for kind in self._kinds:
            if kind.between_brokers:
                for quota in self.of_kind(kind):
                    for bucket in quota.shared_buckets(now):
                        bucket.share(1.0, now)

    def _first_parts_of(self, node_id: int, between_brokers: bool) -> SharedFirstParts:
        first_parts = self._first_parts.get((node_id, between_brokers))
        if first_parts is None:
            without_sharing = RESERVE if self._joining and between_brokers else 1.0
            first_parts = SharedFirstParts(node_id, self._sharing, without_sharing)
            self._first_parts[node_id, between_brokers] = first_parts
        return first_parts

    def forget_idle(self, now: float) -> bool:
        """Drop some of the state that has not been used for an hour; return whether that is not done in all
        engines. Other work has its turn before the next call.
        """
        if not self._forgetting:
            self._forgetting = [engine for _, engine in self._all()]
        if self._forgetting and not self._forgetting[-1].forget_idle(now):
            self._forgetting.pop()
        return len(self._forgetting) > 0
