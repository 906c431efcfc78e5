"""Bucket: the usage of one quota by one entity, and the throttling that it caused."""

import math
from typing import Final, final

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import ENFORCE, OBSERVE, UNLIMITED
from proxy.quota.measure.bucket_state import BucketState
from proxy.quota.measure.fair_share import Debtors, FairShare
from proxy.quota.measure.fetch_queue import FetchQueue
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.rates import EwmaRate, SampledRate, TokenBucket
from proxy.wire.cursor import NO_PARTITION

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
        """With tokens: uses of the current sample that are not in `_sampled` yet."""
        self._unsampled_at = NEVER
        """The time of the last of them; NEVER if there are none."""
        self._sample_ends = NEVER
        self.tokens: TokenBucket | None = None
        self._rule = rule
        self._sampled = SampledRate(rule.window.samples, rule.window.seconds)
        """Kafka's rate, see _rate(): metrics show it, and without tokens it limits."""
        self.allowance: TokenBucket | None = None
        """What a rule that repays allows besides Kafka's rate: a whole window's worth, refilled at the
        limit.
        """
        self._fair_share: FairShare | None = None
        """Divides the debt among connections; None if there is no debt, or it is not divided."""
        self._debtors: Debtors | None = None
        """Without tokens: the connections that have used the bucket since it has been over its limit."""
        self.ahead_seconds = 0.0
        """After record() has returned a wait: how much of it is for what was owed before, by others of the
        same user, if the connection is new to the debt. A request is forwarded when that is paid.
        """
        self.observed = rule.observed
        """Whether waits are only counted."""
        self._owed_until = 0.0
        """Without tokens: the end of the longest wait that Kafka's rate would forget; see _owed()."""
        self.whole_limit = limit
        """The quota, per second, however many processes share it."""
        self._part = 1.0
        """The fraction of it that this process may use."""
        self.average: EwmaRate | None = None
        """Broker-side quotas have an average instead of the two, and use record_average()."""
        self.waiters = 0
        """The connections that wait for the bucket without a debt; its owner counts them."""
        self.growth = 0.0
        """If its use comes in bursts, so that the use of a moment says little: how many times the average use
        its owner could use; otherwise 0.0.
        """
        self.fetch_queue: FetchQueue | None = None
        """Consumers' quotas: what fetches in flight have reserved; None before the first."""
        self.throttled_until = 0.0
        self.throttled_requests = 0
        self.throttle_seconds = 0.0
        self.quota: Final = quota
        self.user: Final = user
        self.client_id: Final = client_id
        self.ip: Final = ip
        self.topic: Final = topic
        self.partition: Final = partition
        self._set_tokens(rule, now)

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
        self._set_tokens(rule, now)
        if rule.observed:
            self._owed_until = 0.0
        elif self._owed_until > now and old_limit != UNLIMITED:
            self._owed_until = now + (self._owed_until - now) * old_limit / limit

    def _set_tokens(self, rule: RateRule, now: float) -> None:
        burst = max(self.limit * rule.burst_seconds, rule.least_burst)
        self.tokens = self._refilled(self.tokens, burst, now) if rule.paced else None
        burst = self.limit * rule.window.burst_seconds
        self.allowance = self._refilled(self.allowance, burst, now) if rule.repays else None

    def _refilled(self, tokens: TokenBucket | None, burst: float, now: float) -> TokenBucket:
        """Tokens that refill at the limit."""
        if tokens is None:
            return TokenBucket(self.limit, burst)
        tokens.configure(self.limit, burst, now)
        return tokens

    def inherit(self, others: list["Bucket"], now: float) -> None:
        """Begin with what the same clients have used of other buckets of this quota: on each broker, or over
        all brokers. All debts to them remain owed. Without a debt, this bucket has no more tokens than any of
        them.
        """
        self._begin_rate(self._rule)
        uses = [use for other in others for use in other._rate().uses()]
        for at, value in sorted(uses):
            self._sampled.record(value, at)
        _inherit_tokens(self.allowance, [other.allowance for other in others], now)
        tokens = self.tokens
        owed = sum([max(other._owed_until - now, 0.0) for other in others])
        self._owed_until = max(self._owed_until, now + owed) if tokens is None and owed > 0.0 else 0.0
        _inherit_tokens(tokens, [other.tokens for other in others], now)
        debt = self.debt(now)
        if debt > 0.0 and not self.observed:
            # No connection has this debt, so it gets a part of the limit as if a connection had it.
            self._fair_share = FairShare(now)
            self._fair_share.owe(Identity(self.user, self.client_id, self.ip), debt, self.limit, now)

    def record(self, value: float, now: float, who: Identity | None = None) -> float:
        """Count a use; return how many seconds the client must wait, 0.0 within the limit.

        With `who`, a debt of tokens is divided among the connections that made it (an Identity belongs to one
        connection). Without, each connection waits for the whole debt.
        """
        self.last_used = now
        self.used += value
        tokens = self.tokens
        self.ahead_seconds = 0.0
        if tokens is None:
            return self._record_sampled(value, now, who)
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
            return 0.0
        rule = self._rule
        if seconds > rule.max_debt_seconds:
            tokens.record((rule.max_debt_seconds - seconds) * self.limit, now)
        elif who is not None:
            seconds = self._share(who, min(value, seconds * self.limit), now)
        return min(seconds, rule.max_throttle_seconds)

    def _record_sampled(self, value: float, now: float, who: Identity | None) -> float:
        """The rest of record() where Kafka's rate limits."""
        rule = self._rule
        sampled = self._rate()
        sampled.record(value, now)
        seconds = self._owed(sampled.throttle_seconds(self.limit, now), value, now)
        allowance = self.allowance
        if allowance is not None:
            allowance.record(value, now)
            seconds = max(seconds, allowance.throttle_seconds(self.limit, now))
        if who is not None and not rule.observed:
            self._note_debtor(who, seconds, value)
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
        if self.tokens is not None:
            return self.tokens.throttle_seconds(self.limit, now)
        if self.average is not None:
            return self.average.throttle_seconds(self.limit, now)
        seconds = max(self._rate().throttle_seconds(self.limit, now), self._owed_until - now, 0.0)
        if self.allowance is not None:
            seconds = max(seconds, self.allowance.throttle_seconds(self.limit, now))
        return seconds

    def record_average(self, value: float, now: float) -> None:
        """Count a use in `average`; a negative value takes one back. It never makes a client wait."""
        self.last_used = now
        self.used += value
        if self.average is not None:
            self.average.record(value, now)

    def measure(self, now: float) -> float:
        """The rate per second: the average of a broker-side quota, otherwise Kafka's sampled rate."""
        return self._rate().measure(now) if self.average is None else self.average.measure(now)

    def as_new(self, now: float) -> bool:
        """Whether it limits clients no more than a new bucket: it has all its tokens, or no use in its
        window.
        """
        if self.tokens is not None:
            return self.tokens.full(now)
        allowance = self.allowance
        unused = self.measure(now) <= 0.0 and self._owed_until <= now
        return unused and (allowance is None or allowance.full(now))

    def over(self, now: float) -> bool:
        """Whether the use is over the limit."""
        if self.tokens is not None:
            return self.tokens.measure(now) < 0.0
        return self.measure(now) > self.limit

    def _share(self, who: Identity, tokens: float, now: float) -> float:
        """Add tokens to the debt of a connection; return how long it waits."""
        fair_share = self._fair_share
        if fair_share is None:
            fair_share = FairShare(now)
            self._fair_share = fair_share
        seconds = fair_share.owe(who, tokens, self.limit, now)
        self.ahead_seconds = fair_share.ahead_seconds
        return seconds

    def _note_debtor(self, who: Identity, seconds: float, value: float) -> None:
        if seconds <= 0.0:
            self._debtors = None
            return
        debtors = self._debtors
        if debtors is None:
            debtors = Debtors()
            self._debtors = debtors
        if debtors.new(who):
            self.ahead_seconds = max(seconds - value / self.limit, 0.0)

    def give_back(self, value: float, now: float, who: Identity | None = None) -> None:
        """Take back a use that has not happened; `who` as for record()."""
        self.used -= value
        self._rate().record(-value, now)
        tokens = self.tokens
        if tokens is None:
            if self._owed_until > now:
                self._owed_until -= value / self.limit
            if self.allowance is not None:
                self.allowance.record(-value, now)
            return
        tokens.record(-value, now)
        fair_share = self._fair_share
        if fair_share is not None and who is not None:
            fair_share.give_back(who, value, self.limit, now)

    def _owed(self, seconds: float, value: float, now: float) -> float:
        """The wait without tokens: `seconds` by Kafka's rate, or until the end of an earlier wait.

        Kafka's rate forgets a use after its window. If a wait is longer than that, or max_throttle_seconds
        shortens it, its end is remembered here, and each use until then postpones it by value / limit
        seconds.
        """
        rule = self._rule
        if self._owed_until > now:
            self._owed_until += value / self.limit
            return self._owed_until - now
        if seconds > min(rule.max_throttle_seconds, rule.window.total_seconds):
            self._owed_until = now + min(seconds, rule.max_debt_seconds)
        return seconds

    def debt(self, now: float) -> float:
        """The use beyond the limit that is not paid yet; 0.0 without tokens."""
        return 0.0 if self.tokens is None else max(-self.tokens.measure(now), 0.0)

    def waiting(self, now: float) -> int:
        """The connections that wait for the bucket; 1 if their number is unknown, 0 if none waits."""
        if self.waiters > 0:
            return self.waiters
        fair_share = self._fair_share
        if fair_share is not None:
            fair_share.pay(self.limit, now)
            return fair_share.debtors
        return 1 if self.wait(now) > 0.0 else 0

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
            tokens=None if self.tokens is None else self.tokens.measure(now),
            topic=self.topic,
            partition=self.partition,
        )


def _inherit_tokens(tokens: TokenBucket | None, others: list[TokenBucket | None], now: float) -> None:
    """Take as many tokens as are missing from the others: all their debts, or what misses most."""
    if tokens is None:
        return
    left = [other.measure(now) for other in others if other is not None]
    debts = sum([min(amount, 0.0) for amount in left])
    excess = tokens.measure(now) - (debts if debts < 0.0 else min(left, default=math.inf))
    if excess > 0.0:
        tokens.record(excess, now)
