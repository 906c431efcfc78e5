"""Bucket: the usage of one quota by one entity, and the throttling that it caused."""

import math
from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import ENFORCE, OBSERVE, UNLIMITED
from proxy.quota.measure.bucket_state import BucketState
from proxy.quota.measure.busy_time import BusyTime
from proxy.quota.measure.fair_share import FairShare
from proxy.quota.measure.fetch_queue import FetchQueue
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.rates import EwmaRate, SampledRate, TokenBucket
from proxy.quota.measure.window_limit import WindowLimit
from proxy.wire.cursor import NO_PARTITION

Limiter = TokenBucket | WindowLimit | EwmaRate
"""What limits a bucket; its rule decides which:

    TokenBucket     `paced`: its debt makes clients wait.
    EwmaRate        `averages`: requests are rejected by it, and no client waits.
    WindowLimit     otherwise: Kafka's sampled rate makes clients wait.
"""
NEVER: Final = -math.inf
"""Before all times."""
IDLE_SECONDS: Final = 3600.0
"""Kafka removes a quota's sensor after this long without a record (inactive.sensor.expiration.time)."""


@final
class Bucket:
    """One entity's use of one quota. The parts of a name that the entity does not have are empty, or
    NO_PARTITION.
    """

    def __init__(
        self,
        *,
        quota: str,
        limit: float,
        rule: RateRule,
        now: float,
        user: str = "",
        client_id: str = "",
        ip: str = "",
        topic: str = "",
        partition: int = NO_PARTITION,
    ) -> None:
        # The fields that record() uses come first, so that they share cache lines.
        self.limit = limit
        """Per second, what this process may use: `whole_limit`, or its share of it."""
        self.last_used = now
        self.used = 0.0
        """The sum of all uses."""
        self._unsampled = 0.0
        """If tokens limit: uses of the current sample that are not in `_sampled` yet."""
        self._unsampled_at = NEVER
        """The time of the last of them; NEVER if there are none."""
        self._sample_ends = NEVER
        limiter = _limiter(None, limit, rule, now)
        self.tokens: TokenBucket | None = limiter if isinstance(limiter, TokenBucket) else None
        """The tokens, if they limit."""
        self._limiter: Limiter = limiter
        self._rule = rule
        self._sampled = SampledRate(rule.window.samples, rule.window.seconds)
        """Kafka's rate, see _rate(): metrics show it, whatever limits."""
        self._fair_share: FairShare | None = None
        """Divides the debt of tokens among connections; None if there is no debt, or it is not divided."""
        self.ahead_seconds = 0.0
        """After record() has returned a wait: how much of it is for what was owed before, by others of the
        same user, if the connection is new to the debt. A request is forwarded when that is paid.
        """
        self.observed = rule.observed
        """Whether waits are only counted."""
        self.whole_limit = limit
        """The quota, per second, however many processes share it."""
        self._part = 1.0
        """The fraction of it that this process may use."""
        self.waiters = 0
        """The connections that wait for the bucket without a debt; its owner counts them."""
        self._closed_until = 0.0
        """When all processes together are within the whole limit, as far as this one knows."""
        self.growth = 0.0
        """If its use comes in bursts, so that the use of a moment says little: how many times the average use
        its owner could use; otherwise 0.0.
        """
        self.busy_time: BusyTime | None = None
        """Request time: what has been charged lately; None before the first charge that it bounds."""
        self.fetch_queue: FetchQueue | None = None
        """Consumers' quotas: what fetches in flight have reserved; None before the first."""
        self.kept_until = now
        """The time before which its owner does not drop it for another bucket."""
        self.throttled_until = 0.0
        self.throttled_requests = 0
        self.throttle_seconds = 0.0
        self.quota: Final = quota
        self.user: Final = user
        self.client_id: Final = client_id
        self.ip: Final = ip
        self.topic: Final = topic
        self.partition: Final = partition

    @property
    def rule(self) -> RateRule:
        """How it limits."""
        return self._rule

    def __lt__(self, other: "Bucket") -> bool:
        """Order a heap, whose owner changes `kept_until` only of a bucket that it has taken out."""
        return self.kept_until < other.kept_until

    def __hash__(self) -> int:
        """By identity, as equality is. A compiled class with an order inherits no hash."""
        return id(self)

    @property
    def allowance(self) -> TokenBucket | None:
        """WindowLimit.allowance, if Kafka's rate limits and the rule repays."""
        limiter = self._limiter
        return limiter.allowance if isinstance(limiter, WindowLimit) else None

    @property
    def averaged(self) -> bool:
        """Whether an average limits."""
        return isinstance(self._limiter, EwmaRate)

    @property
    def windowed(self) -> bool:
        """Whether Kafka's rate limits."""
        return isinstance(self._limiter, WindowLimit)

    @property
    def window_seconds(self) -> float:
        """The seconds of the limit that Kafka's rate allows an idle client at once."""
        return self._rule.window.burst_seconds

    def configure(self, limit: float, rule: RateRule, now: float) -> None:
        """Set a new limit or rule. The usage so far still counts.

        A bucket without a limit is not charged; its tokens refill at the last limit, in case that it returns.
        """
        self.whole_limit = limit
        self._configure(limit * self._part, rule, now)

    def share(self, part: float, now: float) -> None:
        """Let this process use a part of the limit, above 0.0. The usage so far still counts."""
        if part != self._part and self.whole_limit != UNLIMITED:
            self._part = part
            self._configure(self.whole_limit * part, self._rule, now)

    def close(self, seconds: float, now: float) -> None:
        """Admit nothing for some seconds, at most for Kafka's window, because all processes together have
        used more than the limit.
        """
        self._closed_until = now + min(seconds, self._rule.window.total_seconds)

    def closed(self, now: float) -> bool:
        """Whether nothing is admitted because of other processes."""
        return now < self._closed_until

    def _configure(self, limit: float, rule: RateRule, now: float) -> None:
        old_limit = self.limit
        self.limit = limit
        fair_share = self._fair_share
        if limit == UNLIMITED or rule.observed or not rule.paced:
            self._fair_share = None
        elif fair_share is not None:
            fair_share.pay(old_limit, now)
        if limit == UNLIMITED:
            return
        old = self._rule
        if not rule.window.same(old.window):
            self._begin_rate(rule)
        self._rule = rule
        self.observed = rule.observed
        before = self._limiter
        limiter = _limiter(before, limit, rule, now)
        self._limit_by(limiter)
        if isinstance(limiter, WindowLimit):
            limiter.share(self._part, rule.window, limiter is before and self.used > 0.0, now)
            if old_limit != UNLIMITED:
                limiter.rescale(old_limit, limit, now)

    def forget_tokens(self) -> None:
        """Begin with all tokens when configure() sets the next rule that has some."""
        self._limit_by(WindowLimit())

    def _limit_by(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self.tokens = limiter if isinstance(limiter, TokenBucket) else None

    def inherit(self, others: list["Bucket"], now: float) -> None:
        """Begin with what the same clients have used of other buckets of this quota: on each broker, or over
        all brokers. All debts to them remain owed. Without a debt, this bucket has no more tokens than any of
        them.
        """
        self._begin_rate(self._rule)
        uses = [use for other in others for use in other._rate().uses()]
        for at, value in sorted(uses):
            self._sampled.record(value, at)
        limiter = self._limiter
        if isinstance(limiter, WindowLimit):
            windows = [other._limiter for other in others]
            limiter.inherit([window for window in windows if isinstance(window, WindowLimit)], now)
        elif isinstance(limiter, TokenBucket):
            tokens = [other.tokens for other in others]
            limiter.inherit([each for each in tokens if each is not None], now)
            debt = self.debt(now)
            if debt > 0.0 and not self.observed:
                # No connection has this debt, so it gets a part of the limit as if a connection had it.
                self._fair_share = FairShare(now)
                self._fair_share.owe(Identity(self.user, self.client_id, self.ip), debt, self.limit, now)

    def begin_with_rest(self, other: "Bucket", now: float) -> None:
        """Begin with what another bucket of the same limit has left. Its debt is not owed."""
        for at, value in other._rate().uses():
            self._sampled.record(value, at)
        tokens = self.tokens
        left = other.tokens
        if tokens is not None and left is not None:
            tokens.record(tokens.burst - max(left.measure(now), 0.0), now)

    def record(self, value: float, now: float, who: Identity | None = None) -> float:
        """Count a use; return how many seconds the client must wait, 0.0 within the limit.

        With `who`, a debt of tokens is divided among the connections that made it (an Identity belongs to one
        connection). Without, each connection waits for the whole debt.
        """
        self.last_used = now
        self.used += value
        self.ahead_seconds = 0.0
        tokens = self.tokens
        if tokens is None:
            return self._record_without_tokens(value, now, who)
        if self._unsampled_at <= now < self._sample_ends:  # nearly always: the same sample
            self._unsampled += value
            self._unsampled_at = now
        else:
            self._rate().record(value, now)
            self._sample_ends = self._sampled.sample_ends
        seconds = tokens.take(value, now)
        if seconds <= 0.0:  # nearly always: no debt
            if self._fair_share is not None:
                self._fair_share = None
            return 0.0 if now >= self._closed_until else self._until_open(now)
        rule = self._rule
        if seconds > rule.max_debt_seconds:
            tokens.record((rule.max_debt_seconds - seconds) * self.limit, now)
        elif who is not None:
            seconds = self._share(who, min(value, seconds * self.limit), now)
        return min(max(seconds, self._closed_until - now), rule.max_throttle_seconds)

    def _until_open(self, now: float) -> float:
        """The wait of a request that only other processes cause."""
        return min(self._closed_until - now, self._rule.max_throttle_seconds)

    def _record_without_tokens(self, value: float, now: float, who: Identity | None) -> float:
        """The rest of record() where an average or Kafka's rate limits."""
        limiter = self._limiter
        if isinstance(limiter, EwmaRate):
            limiter.record(value, now)
            return 0.0
        assert isinstance(limiter, WindowLimit), "the bucket has no tokens"
        rule = self._rule
        rate = self._rate()
        rate.record(value, now)
        wait = rate.excess_seconds(self.mean_limit(now), self.limit, now)
        seconds = max(limiter.record(value, wait, self.limit, rule, now), self._closed_until - now)
        if who is not None and not rule.observed:
            self.ahead_seconds = limiter.ahead_seconds(who, value, seconds, self.limit)
        return min(seconds, rule.max_throttle_seconds)

    def _rate(self) -> SampledRate:
        """Kafka's rate, with all uses."""
        if self._unsampled_at != NEVER:
            self._sampled.record(self._unsampled, self._unsampled_at)
            self._unsampled = 0.0
            self._unsampled_at = NEVER
        return self._sampled

    def _begin_rate(self, rule: RateRule) -> None:
        """Forget all uses in Kafka's rate."""
        self._sampled = SampledRate(rule.window.samples, rule.window.seconds)
        self._unsampled = 0.0
        self._unsampled_at = self._sample_ends = NEVER

    def wait(self, now: float) -> float:
        """The seconds until the bucket is within its limit; 0.0 if it is."""
        return max(self._own_wait(now), self._closed_until - now)

    def _own_wait(self, now: float) -> float:
        """The same by this process's part of the limit."""
        limiter = self._limiter
        if not isinstance(limiter, WindowLimit):
            return limiter.throttle_seconds(self.limit, now)
        wait = self._rate().excess_seconds(self.mean_limit(now), self.limit, now)
        return limiter.wait(wait, self.limit, now)

    def mean_limit(self, now: float) -> float:
        """What the rate is compared with: the limit, and for Kafka's rate the mean of this process's parts of
        it during the time that the rate covers.
        """
        limiter = self._limiter
        if not isinstance(limiter, WindowLimit) or not limiter.shared:
            return self.limit
        return self.whole_limit * limiter.mean_part(self._rate().covered_seconds(now), now)

    def measure(self, now: float) -> float:
        """The rate per second: the average if that limits, otherwise Kafka's sampled rate."""
        limiter = self._limiter
        return limiter.measure(now) if isinstance(limiter, EwmaRate) else self._rate().measure(now)

    def as_new(self, now: float) -> bool:
        """Whether it limits clients no more than a new bucket: it has all its tokens, or no use in its
        window.
        """
        limiter = self._limiter
        if isinstance(limiter, TokenBucket):
            return limiter.full(now)
        unused = self.measure(now) <= 0.0
        return unused and (isinstance(limiter, EwmaRate) or limiter.as_new(now))

    def over(self, now: float) -> bool:
        """Whether the use is over the limit."""
        tokens = self.tokens
        return self.measure(now) > self.mean_limit(now) if tokens is None else tokens.measure(now) < 0.0

    def _share(self, who: Identity, tokens: float, now: float) -> float:
        """Add tokens to the debt of a connection; return how long it waits."""
        fair_share = self._fair_share
        if fair_share is None:
            fair_share = FairShare(now)
            self._fair_share = fair_share
        seconds = fair_share.owe(who, tokens, self.limit, now)
        self.ahead_seconds = fair_share.ahead_seconds
        return seconds

    def give_back(self, value: float, now: float, who: Identity | None = None) -> None:
        """Take back a use that has not happened; `who` as for record()."""
        self.used -= value
        self._rate().record(-value, now)
        limiter = self._limiter
        if isinstance(limiter, WindowLimit):
            limiter.give_back(value, self.limit, now)
            return
        limiter.record(-value, now)
        fair_share = self._fair_share
        if fair_share is not None and who is not None:
            fair_share.give_back(who, value, self.limit, now)

    def debt(self, now: float) -> float:
        """The use beyond the limit that is not paid yet; 0.0 without tokens."""
        tokens = self.tokens
        return 0.0 if tokens is None else max(-tokens.measure(now), 0.0)

    def waiting(self, now: float) -> int:
        """The connections that wait for the bucket; 1 if their number is unknown, 0 if none waits."""
        if self.waiters > 0:
            return self.waiters
        fair_share = self._fair_share
        if fair_share is not None:
            fair_share.pay(self.limit, now)
            return fair_share.debtors
        return 1 if (self.wait(now) if self.windowed else self._own_wait(now)) > 0.0 else 0

    def count_throttle(self, seconds: float, requests: int, until: float) -> None:
        """Count a wait. `requests`: 1, or 0 for a request that has been counted before."""
        self.throttled_requests += requests
        self.throttle_seconds += seconds
        self.throttled_until = max(self.throttled_until, until)

    def count_observed(self, seconds: float, now: float) -> float:
        """Count a wait that is not enforced; return by how many seconds it exceeds the last one.

        Only that part is added, because a client that had waited would have sent no request in between.
        """
        until = now + seconds
        more = max(until - max(self.throttled_until, now), 0.0)
        self.count_throttle(more, 1, until)
        return more

    def idle(self, now: float) -> bool:
        """Whether it has not been used for an hour. A bucket with a debt is kept until the debt is paid."""
        return now - self.last_used >= IDLE_SECONDS and self.wait(now) <= 0.0

    def state(self, now: float) -> BucketState:
        tokens = self.tokens
        return BucketState(
            quota=self.quota,
            user=self.user,
            client_id=self.client_id,
            limit=self.whole_limit,
            share=self.limit,
            rate=self.measure(now),
            throttled_until=self.throttled_until,
            throttled_requests=self.throttled_requests,
            throttle_seconds=self.throttle_seconds,
            mode=OBSERVE if self.observed else ENFORCE,
            ip=self.ip,
            tokens=None if tokens is None else tokens.measure(now),
            topic=self.topic,
            partition=self.partition,
        )


def _limiter(before: Limiter | None, limit: float, rule: RateRule, now: float) -> Limiter:
    """What limits by a rule: the limiter that there was before, unless the rule needs another one."""
    if rule.averages:
        return before if isinstance(before, EwmaRate) else EwmaRate()
    if rule.paced:
        burst = max(limit * rule.burst_seconds, rule.least_burst)
        if not isinstance(before, TokenBucket):
            return TokenBucket(limit, burst)
        before.configure(limit, burst, now)
        return before
    window = before if isinstance(before, WindowLimit) else WindowLimit()
    window.configure(limit, rule, now)
    return window
