"""QuotaEngine: the quotas of one broker."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.cluster_view import ClusterView
from proxy.quota.fetch.consumer_plan import ConsumerPlan
from proxy.quota.fetch.follower_plan import FollowerPlan
from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.known_writers import KnownWriters
from proxy.quota.limits.enforcement import NO_EXEMPTIONS, UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.debt import Debt
from proxy.quota.quota import Quota
from proxy.quota.rejection.rejections import NOTHING_REJECTED, RejectedItems, Rejections
from proxy.quota.usage import ClientUsage
from proxy.quota.verdict import ALLOW, Verdict, combine
from proxy.wire.api_keys import PRODUCE, SHARE_FETCH
from proxy.wire.apis.batch_heads import BatchHeads
from proxy.wire.error_codes import NOT_ENOUGH_REPLICAS, THROTTLING_QUOTA_EXCEEDED
from proxy.wire.fetch.known_watermarks import KnownWatermarks
from proxy.wire.views import Item, RequestView, ResponseView

_NO_QUOTAS: Final[list[Quota]] = []
NO_API: Final = -1


@final
class QuotaEngine:
    """Calls the active quotas for each request, and combines their verdicts. It skips exempt clients."""

    def __init__(self, quotas: list[Quota]) -> None:
        self._quotas: Final = quotas
        self._known_writers: Final = KnownWriters()
        self._forgets = 0
        """The index of the quota that forget_idle() continues with."""
        self._exemptions = NO_EXEMPTIONS
        self.max_throttle_seconds = UNLIMITED
        """The longest throttle time that is announced. A longer wait is reviewed each time that it has
        passed.
        """
        self._configured_throttle_seconds = UNLIMITED
        self._review_seconds = UNLIMITED
        self._rejection_error = 0
        self._active: list[Quota] = []
        """The quotas that have limits. _index() selects these and the lists below, so that a request costs
        nothing for quotas that do not concern it.
        """
        self._by_api: list[list[Quota]] = []
        """The active quotas by API key."""
        self._admitting: list[list[Quota]] = []
        """Those whose admit() does something for the API."""
        self._charging: list[list[Quota]] = []
        """Those whose charge() does something for the API."""
        self._intercepted: frozenset[int] = frozenset()
        """The keys of the APIs for which intercepts() holds."""
        self._limited: frozenset[int] = frozenset()
        """The keys of the APIs for which intercepts_limited() holds."""
        self._omitting: list[Quota] = []
        self.omits = False
        """Whether any quota may omit partitions of fetches."""
        self._limiting_fetches: list[Quota] = []
        self.limits_fetches = False
        """Whether any quota may limit the bytes of consumers' fetches."""
        self.known_watermarks: Final = KnownWatermarks()
        """The watermarks of the broker's partitions that quotas may omit from consumers' fetches."""
        self.generation = 0
        """Incremented by configure(). The results of may_omit() are valid for one generation."""
        self._rejecting: list[Quota] = []
        self.rejects = False
        """Whether any quota may reject partitions of Produce requests."""
        self.rejections: Final = Rejections()
        self._limits_topics = False
        self._limits_time = False
        self._by_items: list[bool] = []
        """By API key: whether any quota needs the items of its messages."""
        self.any_items = False
        """Whether wants_items() holds for any API."""
        self._index()

    def _index(self) -> None:
        self._active = [quota for quota in self._quotas if quota.active]
        highest = max([key for quota in self._active for key in quota.api_keys], default=-1)
        self._by_api = [
            [quota for quota in self._active if api_key in quota.api_keys] for api_key in range(highest + 1)
        ]
        self._admitting = [
            [quota for quota in quotas if api_key not in quota.only_charges]
            for api_key, quotas in enumerate(self._by_api)
        ]
        self._charging = [
            [quota for quota in quotas if api_key not in quota.only_admits]
            for api_key, quotas in enumerate(self._by_api)
        ]
        self._omitting = [quota for quota in self._active if quota.omits]
        self.omits = len(self._omitting) > 0
        self._limiting_fetches = [quota for quota in self._active if quota.limits_fetches]
        self.limits_fetches = len(self._limiting_fetches) > 0
        self.generation += 1
        intercepting = [quota for quota in self._active if quota.intercepts]
        self._intercepted = frozenset([key for quota in intercepting for key in quota.api_keys])
        self._limited = frozenset([key for quota in self._active for key in quota.limited_api_keys])
        self._rejecting = [quota for quota in self._active if quota.rejects]
        self.rejects = len(self._rejecting) > 0
        if not self.rejects:
            self.rejections.clear()
        self._limits_topics = any(quota.limits_topics for quota in self._active)
        self._limits_time = any(quota.limits_time for quota in self._active)
        item_api_keys = {key for quota in self._active for key in quota.item_api_keys}
        self._by_items = [api_key in item_api_keys for api_key in range(max(item_api_keys, default=-1) + 1)]
        self.any_items = len(self._by_items) > 0

    def wants_items(self, api_key: native) -> bool:
        """Whether any quota needs the items of requests and responses of this API."""
        return api_key < len(self._by_items) and self._by_items[api_key]

    def limits_topics(self, who: Identity) -> bool:
        """Whether any quota limits this client's Produce requests by topic."""
        return self._limits_topics and not self._exemptions.exempt(who)

    @property
    def charges_time(self) -> bool:
        """Whether any quota charges the time that brokers work on requests."""
        return self._limits_time

    def see_threads(self, node_id: int, threads: int) -> None:
        """Tell the quotas how many threads of the broker work on requests; 0: that is not known."""
        for quota in self._quotas:
            if quota.node_id == node_id:
                quota.threads = threads

    def limits_time(self, who: Identity) -> bool:
        """Whether any quota charges the time that brokers work on this client's requests."""
        return self._limits_time and not self._exemptions.exempt(who)

    def covers(self, api_key: int) -> bool:
        """Whether any quota applies to this API."""
        return len(_quotas_of(self._by_api, api_key)) > 0

    def intercepts(self, api_key: int) -> bool:
        """Whether the proxy must respond to requests of this API itself, because of a quota."""
        return api_key in self._intercepted

    def intercepts_limited(self, api_key: int) -> bool:
        """Whether intercepts_from() holds for some client."""
        return api_key in self._limited

    def intercepts_from(self, api_key: int, who: Identity, now: float) -> bool:
        """Whether the proxy must respond to this client's requests of this API itself."""
        if self._exemptions.exempt(who):
            return False
        return any(api_key in quota.limited_api_keys and quota.limits(who, now) for quota in self._active)

    def connect(self, address: str, now: float) -> Verdict:
        """Charge a new connection. The wait is from `now`; see Quota.connect()."""
        if self._exemptions.exempt_address(address):
            return ALLOW
        verdict = ALLOW
        for quota in self._active:
            verdict = combine(verdict, _enforced(quota.connect(address, now), now, NO_API, None))
        _count(verdict, 0.0, now, NO_API, None)
        return verdict

    def give_back_connection(self, address: str, now: float) -> None:
        """Take back the charge of a connection that has ended before it was served."""
        if not self._exemptions.exempt_address(address):
            for quota in self._active:
                quota.give_back_connection(address, now)

    def owed(self, who: Identity, now: float) -> Bucket | None:
        """Return the bucket with the longest debt for which a client's first request on a connection waits;
        None if it does not wait.
        """
        if self._exemptions.exempt(who):
            return None
        longest: Bucket | None = None
        seconds = 0.0
        for quota in self._active:
            bucket = quota.owed(who, now)
            if bucket is not None and not bucket.observed:
                wait = bucket.wait(now)
                if wait > seconds:
                    longest, seconds = bucket, wait
        return longest

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        """Charge a request that has been read. The wait is from `now`."""
        quotas = _quotas_of(self._admitting, request.api_key)
        if not quotas or self._exemptions.exempt(who):
            return ALLOW
        api_key = request.api_key
        if api_key == PRODUCE and self._limits_topics:
            self._known_writers.mark(request, who)
        verdict = ALLOW
        for quota in quotas:
            admitted = quota.admit(request, who, now)
            if admitted is not ALLOW:
                verdict = combine(verdict, _enforced(admitted, now, api_key, who.usage))
        if verdict is not ALLOW:
            _count(verdict, 0.0, now, api_key, who.usage)
        return verdict

    def charge(
        self,
        request: RequestView,
        response: ResponseView,
        who: Identity,
        now: float,
        throttled_until: float = 0.0,
    ) -> Verdict:
        """Charge a response. The wait is from `now`, and does not include that of admit().

        `throttled_until` is the end of the wait of admit(), 0.0 for none: a request that waits for both
        counts as one throttled request, and overlapping time counts once.
        """
        quotas = _quotas_of(self._charging, request.api_key)
        if not quotas or self._exemptions.exempt(who):
            return ALLOW
        api_key = request.api_key
        usage = who.usage
        verdict = ALLOW
        for quota in quotas:
            charged = quota.charge(request, response, who, now)
            if charged is not ALLOW:
                verdict = combine(verdict, _enforced(charged, now, api_key, usage))
        if api_key == PRODUCE and (response.items or request.uncharged) and self._limits_topics:
            self._known_writers.learn(request, response, who, now)
        if verdict is not ALLOW:
            _count(verdict, throttled_until, now, api_key, usage)
        return verdict

    def give_back(self, request: RequestView, items: list[Item], who: Identity, now: float) -> None:
        """Take back the charge of admit() for a Produce request that is not forwarded after all."""
        if not self._exemptions.exempt(who):
            for quota in _quotas_of(self._by_api, request.api_key):
                quota.give_back_request(request, items, who, now)

    def review(self, debt: Debt, now: float) -> float:
        """Return the time at which a debt is paid under the limits in force; at most `now` if there is no
        debt.
        """
        return now if self._exemptions.exempt(debt.who) else debt.review(now)

    def limit_fetch(self, request: RequestView, who: Identity, grant: FetchGrant, now: float) -> bool:
        """Begin with the grant of a consumer's Fetch or ShareFetch; return whether any quota limits it."""
        if request.replica_id >= 0 or self._exemptions.exempt(who):
            return False
        grant.begin(request.api_key == SHARE_FETCH)
        for quota in self._limiting_fetches:
            quota.limit_fetch(request, who, grant, now)
        grant.places.complete()
        return grant.any

    def withholds(
        self, request: RequestView, response: ResponseView, who: Identity, grant: FetchGrant, now: float
    ) -> bool:
        """Whether a client gets a response without records instead of this one, which is not charged."""
        if grant.watched:
            for quota in self._limiting_fetches:
                bucket = quota.withholds(request, response, who, grant, now)
                if bucket is not None:
                    grant.longest = bucket
                    return True
        return grant.withholds(response.body_size, now)

    def count_wait(
        self, request: RequestView, who: Identity, grant: FetchGrant, seconds: float, until: float
    ) -> None:
        """Count that a fetch has waited, or will wait, for its grant."""
        bucket = grant.longest
        if bucket is None or seconds <= 0.0:
            return
        bucket.count_throttle(seconds, 1, until)
        if who.usage is not None:
            who.usage.count_throttle(request.api_key, bucket.quota, seconds, 1)

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        """Whether any quota may omit this partition from this client's fetches."""
        if not self._omitting or self._exemptions.exempt(who):
            return False
        return any(quota.may_omit(topic, partition, replica_id, who) for quota in self._omitting)

    def plan_consumer_fetch(self, plan: ConsumerPlan, who: Identity, now: float) -> None:
        """Plan a fetch: any quota may omit a partition, and the least bound applies."""
        for quota in self._omitting:
            quota.plan_consumer_fetch(plan, who, now)

    def plan_follower_fetch(self, plan: FollowerPlan, who: Identity, now: float) -> None:
        """Plan a fetch as plan_consumer_fetch() does."""
        for quota in self._omitting:
            quota.plan_follower_fetch(plan, who, now)

    def may_reject(self, now: float) -> bool:
        """Whether reject() may reject items of a Produce request at this time. Mostly it may not, and this
        test is cheaper than reject().
        """
        return self.rejections.may_reject(self._rejecting, now)

    def reject(
        self, request: RequestView, who: Identity, now: float, heads: BatchHeads | None = None
    ) -> RejectedItems:
        """Reject items of a Produce request. The caller admits the rest. `heads`: reads the heads of the
        items' batches, if the request was read without them.

        The wait is from `now`, and has been counted.
        """
        if not self._rejecting or self._exemptions.exempt(who):
            return NOTHING_REJECTED
        return self.rejections.reject(self._rejecting, request, who, self.max_throttle_seconds, now, heads)

    def rejection_error(self, retries_throttling: bool) -> int:
        """The error code of rejected partitions: the configured one, or one that the client retries."""
        if self._rejection_error:
            return self._rejection_error
        return THROTTLING_QUOTA_EXCEEDED if retries_throttling else NOT_ENOUGH_REPLICAS

    def charge_items(
        self, request: RequestView, items: list[Item], who: Identity, now: float, throttled_until: float
    ) -> Verdict:
        """Charge items of a large frame that arrived after its head was charged; see Quota.charge_items().

        `throttled_until` is the end of the client's current wait, 0.0 for none.
        """
        if not self.wants_items(request.api_key) or self._exemptions.exempt(who):
            return ALLOW
        if request.api_key == PRODUCE and self._limits_topics:
            self._known_writers.mark(request, who)
        verdict = ALLOW
        for quota in _quotas_of(self._by_api, request.api_key):
            charged = quota.charge_items(request, items, who, now)
            verdict = combine(verdict, _enforced(charged, now, request.api_key, who.usage))
        _count(verdict, throttled_until, now, request.api_key, who.usage)
        return verdict

    def configure(self, limits: Limits, now: float) -> None:
        """Set new limits in all quotas."""
        settings = limits.settings
        self._exemptions = settings.exemptions
        self._configured_throttle_seconds = settings.algorithm.max_throttle_seconds
        self.review_every(self._review_seconds)
        self._rejection_error = settings.rejection_error
        for quota in self._quotas:
            quota.configure(limits.within(quota.scope), now)
        self._index()

    def review_every(self, seconds: float) -> None:
        """Announce no throttle time over this, whatever is configured: limits may grow at any moment."""
        self._review_seconds = seconds
        self.max_throttle_seconds = min(self._configured_throttle_seconds, seconds)
        for quota in self._quotas:
            quota.review_every(seconds)

    @property
    def wants_partitions(self) -> bool:
        """Whether any quota needs the cluster's partitions."""
        return any(quota.wants_partitions for quota in self._active)

    def see_cluster(self, view: ClusterView, now: float) -> None:
        """Give the cluster's metadata to all quotas."""
        for quota in self._quotas:
            quota.see_cluster(view, now)

    @property
    def active(self) -> list[Quota]:
        """The quotas that have limits; read-only."""
        return self._active

    def forget_idle(self, now: float) -> bool:
        """Drop some of the state that has not been used for an hour, of one quota at a time; return whether
        that is not done.
        """
        at = self._forgets
        if at < len(self._quotas):
            if not self._quotas[at].forget_idle(now):
                self._forgets = at + 1
            return True
        self._forgets = 0
        self.rejections.forget_idle(now)
        self._known_writers.forget(now)
        return False


def _quotas_of(by_api: list[list[Quota]], api_key: native) -> list[Quota]:
    return by_api[api_key] if 0 <= api_key < len(by_api) else _NO_QUOTAS


def _enforced(verdict: Verdict, now: float, api_key: int, usage: ClientUsage | None) -> Verdict:
    """The verdict to enforce: that of an observed bucket becomes ALLOW, and its wait is only counted."""
    if verdict is ALLOW:
        return verdict
    bucket = verdict.bucket
    if bucket is None or not bucket.observed:
        return verdict
    if verdict.throttle_seconds > 0.0:
        more = bucket.count_observed(verdict.throttle_seconds, now)
        if usage is not None:
            usage.count_throttle(api_key, bucket.quota, more, 1)
    return ALLOW


def _count(
    verdict: Verdict, throttled_until: float, now: float, api_key: int, usage: ClientUsage | None
) -> None:
    """Count the part of a wait that exceeds the request's current one."""
    bucket = verdict.bucket
    if bucket is None or verdict.throttle_seconds <= 0.0:
        return
    until = now + verdict.throttle_seconds
    more = until - max(throttled_until, now)
    if more > 0.0:
        requests = 0 if throttled_until > 0.0 else 1
        bucket.count_throttle(more, requests, until)
        if usage is not None:
            usage.count_throttle(api_key, bucket.quota, more, requests)
