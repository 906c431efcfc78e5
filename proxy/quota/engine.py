"""QuotaEngine: which quotas a request must ask, and one verdict out of theirs."""

from typing import Final, final

from proxy.quota.bucket import BucketState
from proxy.quota.identity import Identity
from proxy.quota.limits import Limits
from proxy.quota.quota import PER_CLUSTER, Quota, QuotaKind
from proxy.quota.verdict import PASS, Verdict, combine
from proxy.wire.views import RequestView, ResponseView

_NOBODY: Final[list[Quota]] = []


@final
class QuotaEngine:
    """The quotas of one broker."""

    def __init__(self, quotas: list[Quota]) -> None:
        self._quotas: Final = quotas
        highest = max([key for quota in quotas for key in quota.api_keys], default=-1)
        self._by_api: Final[list[list[Quota]]] = [
            [quota for quota in quotas if api_key in quota.api_keys] for api_key in range(highest + 1)
        ]

    def asks(self, api_key: int) -> bool:
        """Whether any quota wants to see requests and responses of this API."""
        return 0 <= api_key < len(self._by_api) and len(self._by_api[api_key]) > 0

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        """Judge a request when it has been read. The wait is from `now` on."""
        verdict = PASS
        for quota in self._asked(request.api_key):
            verdict = combine(verdict, quota.admit(request, who, now))
        bucket = verdict.bucket
        if bucket is not None and verdict.throttle_seconds > 0.0:
            bucket.count_throttle(verdict.throttle_seconds, 1, now)
        return verdict

    def charge(
        self,
        request: RequestView,
        response: ResponseView,
        who: Identity,
        now: float,
        admitted: Verdict = PASS,
    ) -> Verdict:
        """Judge a response. The wait counts from `now`, and does not contain what admit() said.

        `admitted` is what admit() said of the request: one that waits for both counts as one throttled
        request.
        """
        verdict = PASS
        for quota in self._asked(request.api_key):
            verdict = combine(verdict, quota.charge(request, response, who, now))
        bucket = verdict.bucket
        more = verdict.throttle_seconds - admitted.throttle_seconds
        if bucket is not None and more > 0.0:
            bucket.count_throttle(more, 0 if admitted.throttle_seconds > 0.0 else 1, now)
        return verdict

    def _asked(self, api_key: int) -> list[Quota]:
        if 0 <= api_key < len(self._by_api):
            return self._by_api[api_key]
        return _NOBODY

    def configure(self, limits: Limits, now: float) -> None:
        """Take new limits, all quotas at once."""
        for quota in self._quotas:
            quota.configure(limits, now)

    def buckets(self, now: float) -> list[BucketState]:
        """Every bucket that has been used and has a limit, in the order of the quotas."""
        return [state for quota in self._quotas for state in quota.buckets(now)]

    def forget_idle(self, now: float) -> None:
        """Drop the state that nobody has used for an hour."""
        for quota in self._quotas:
            quota.forget_idle(now)


@final
class QuotaEngines:
    """An engine per broker, made when the broker is first heard of; a PER_CLUSTER quota is in all of them."""

    def __init__(self, kinds: list[QuotaKind], limits: Limits) -> None:
        self._kinds: Final = kinds
        self._limits = limits
        self._shared: Final[dict[str, Quota]] = {}
        self._engines: Final[dict[int, QuotaEngine]] = {}

    def engine(self, node_id: int, now: float) -> QuotaEngine:
        """The broker's engine, with the limits in force."""
        engine = self._engines.get(node_id)
        if engine is None:
            engine = QuotaEngine([self._quota(kind) for kind in self._kinds])
            engine.configure(self._limits, now)
            self._engines[node_id] = engine
        return engine

    def _quota(self, kind: QuotaKind) -> Quota:
        if kind.scope != PER_CLUSTER:
            return kind.build()
        quota = self._shared.get(kind.name)
        if quota is None:
            quota = kind.build()
            self._shared[kind.name] = quota
        return quota

    def engines(self) -> dict[int, QuotaEngine]:
        """Every engine so far, by node id; not to be changed."""
        return self._engines

    def configure(self, limits: Limits, now: float) -> None:
        """Take new limits on every broker, and on those still to come."""
        self._limits = limits
        for engine in self._engines.values():
            engine.configure(limits, now)

    def forget_idle(self, now: float) -> None:
        """Drop the state that nobody has used for an hour, on every broker."""
        for engine in self._engines.values():
            engine.forget_idle(now)
