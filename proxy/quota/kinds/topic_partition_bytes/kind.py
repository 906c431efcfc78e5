"""Bytes of records per second of each partition of a topic, on each broker (KAFKA-16042, KAFKA-16043).

    pace      tokens refill at Q per second up to burst_seconds x Q; wait = -tokens / Q (TokenBucket)
    window    wait = (rate - Q) / Q x window, as in Kafka (SampledRate, QuotaUtils.boundedThrottleTime).
              Consumers pay in whole for bytes beyond a window's worth of tokens (RateRule.repays).

The quotas are configs of topics; each partition of the topic has the rate as its own limit.
producer.byte.rate charges a partition's record batches in a Produce request when it is read, and takes this
back if the broker does not append them; those of a user who has not written to the topic lately are charged
when the broker has appended them (proxy.quota.known_writers). consumer.byte.rate charges those in the
response to a consumer's Fetch and to ShareFetch. The actions of a topic:

    throttle   The client waits for the partition with the longest wait. Client quotas apply too: the longest
               wait of all counts. A consumer's fetch is forwarded only when the partitions of which the
               connection has lately got records have tokens for it, and its max_bytes is bounded. A response
               with records of other partitions that have none is withheld (proxy.quota.fetch.grant).
    reject     Partitions of Produce requests that are over their limit are rejected with a retriable error;
               the rest of the request is forwarded. The client does not wait.
    omit       Partitions that are over their limit are omitted from consumers' fetches. The client does not
               wait.

The topic <default> has the limit of all topics without their own, except internal ones. A Produce request
with topic ids that the proxy does not know yet waits for the names (proxy.relay.requests.unnamed_topics).
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.fetch.consumer_plan import ConsumerPlan
from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.kinds.topic_partition_bytes.advance_buckets import AdvanceBuckets
from proxy.quota.kinds.topic_partition_bytes.buckets import PartitionBuckets
from proxy.quota.kinds.topic_partition_bytes.consumed_lately import ConsumedLately, Consumer
from proxy.quota.kinds.topic_partition_bytes.omitting_plans import OmittingPlans, charge_omittable
from proxy.quota.kinds.topic_partition_bytes.sourced_partitions import SourcedPartitions
from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    OMIT,
    PRODUCER_BYTE_RATE,
    PRODUCER_BYTE_RATE_ACTION,
    REJECT,
    THROTTLE,
)
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import ConfigKey
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_tokens import LEAST_FETCH_SECONDS, free
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.measure.rate_rule import byte_rate_rule
from proxy.quota.not_appended import appended_items, not_appended
from proxy.quota.quota import PER_BROKER, Quota, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict, combine
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.error_codes import not_writable
from proxy.wire.views import UNCHARGED, Item, RequestView, ResponseView

API_KEYS: Final = (PRODUCE, FETCH, SHARE_FETCH)


@final
class RateConfigs:
    """The configs of topics that limit bytes, and of the actions.

    whole_topic: whether the partitions of a topic share the limit.
    """

    def __init__(
        self,
        produced: ConfigKey,
        produced_action: ConfigKey,
        consumed: ConfigKey,
        consumed_action: ConfigKey,
        *,
        whole_topic: bool = False,
    ) -> None:
        self.produced: Final = produced
        self.produced_action: Final = produced_action
        self.consumed: Final = consumed
        self.consumed_action: Final = consumed_action
        self.whole_topic: Final = whole_topic

    @property
    def all(self) -> tuple[ConfigKey, ...]:
        return (self.produced, self.produced_action, self.consumed, self.consumed_action)


PARTITION_CONFIGS: Final = RateConfigs(
    PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, CONSUMER_BYTE_RATE, CONSUMER_BYTE_RATE_ACTION
)


@final
class TopicPartitionBytes(Quota):
    """The byte rates of one broker's partitions, or of whole topics on all brokers."""

    def __init__(self, configs: RateConfigs = PARTITION_CONFIGS) -> None:
        super().__init__(API_KEYS, only_charges=(FETCH, SHARE_FETCH))
        self._configs: Final = configs
        limits = Limits({})
        rule = byte_rate_rule(limits, configs.produced.name)
        whole = configs.whole_topic
        self._produced: Final = PartitionBuckets(
            configs.produced, configs.produced_action, rule, whole_topics=whole
        )
        self._consumed: Final = PartitionBuckets(
            configs.consumed, configs.consumed_action, rule, whole_topics=whole
        )
        self._omitting: Final = OmittingPlans(self._consumed, whole_topics=whole)
        self._produced_by_source: Final = SourcedPartitions("producer_byte_rate")
        self._consumed_by_source: Final = SourcedPartitions("consumer_byte_rate")
        self._advances: Final = AdvanceBuckets()
        self._lately: Final = ConsumedLately()
        self._forgets_consumed = False
        """Whether forget_idle() has done with the buckets of producers."""
        self.configure(limits, 0.0)

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        if request.api_key == PRODUCE:
            verdict = self._produce(request.items, who, now)
            if not self._produced_by_source.any:
                return verdict
            return combine(verdict, self._use(request.items, who, now))
        return ALLOW

    def limit_fetch(self, request: RequestView, who: Identity, grant: FetchGrant, now: float) -> None:
        """Add the buckets of the partitions of which the connection got records lately. Before its first
        response they are unknown: then the lowest limit of any topic bounds the fetch.
        """
        grant.watched = True
        bounding = self._lately.buckets(who, now)
        if bounding is not None:
            grant.places.add_all(bounding)
        elif self._consumed.least_throttled != UNLIMITED and not self._consumed.observed:
            grant.bound(max(int(self._consumed.least_throttled * LEAST_FETCH_SECONDS), 1))

    def withholds(
        self, request: RequestView, response: ResponseView, who: Identity, grant: FetchGrant, now: float
    ) -> Bucket | None:
        places = grant.places
        items = response.items
        consumer = None if self._consumed_by_source.any else self._lately.known(who)
        if consumer is not None:
            consumer.review(self._consumed.changes)
            if consumer.knows(items, places.count_of(consumer.buckets)):
                # The grant has the buckets of all items. If responses have the same partitions in the same
                # order, this is always so, and nothing has to be looked up, here or in charge().
                response.found = consumer
                return None
        found: Bucket | None = None
        for item in items:
            if item.size == 0 or not item.topic:
                continue
            limited = self._consumed.of(item, now)
            if (
                limited is not None
                and not places.expects(limited.bucket)  # nearly always it is one of them
                and not limited.omits
                and self._waits_for(limited.bucket, who, grant, now)
            ):
                found = limited.bucket
            bucket = self._consumed_by_source.find(item, who, now)
            if bucket is not None and self._waits_for(bucket, who, grant, now):
                found = bucket
        return found

    def _waits_for(self, bucket: Bucket, who: Identity, grant: FetchGrant, now: float) -> bool:
        """Return whether a bucket has no free tokens, and the fetch has not reserved any of it. If so, have
        the next fetch of the connection wait for the bucket.
        """
        if bucket.observed or free(bucket, now) or grant.places.has(bucket):
            return False
        self._lately.consumer(who, now).got(bucket, now)
        return True

    def reject(self, items: list[Item], over: dict[int, Bucket], now: float) -> None:
        for index, item in enumerate(items):
            limited = self._produced.find(item.topic, item.partition, now) if item.topic else None
            if limited is not None and limited.action == REJECT and limited.bucket.over(now):
                over.setdefault(index, limited.bucket)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if request.api_key == PRODUCE:
            if response.items:  # only partitions with an error
                self._give_back_rejected(request, response, who, now)
            return self._charge_appended(request, response, who, now) if request.uncharged else ALLOW
        if request.replica_id >= 0:
            return ALLOW
        found = response.found
        if isinstance(found, Consumer) and found.owner is self._lately:
            return found.charge_known(response.items, who, now)
        return self._consume(request.api_key, response.items, who, now)

    def charge_items(self, request: RequestView, items: list[Item], who: Identity, now: float) -> Verdict:
        if request.api_key == PRODUCE:
            return combine(self._produce(items, who, now), self._use(items, who, now))
        if request.replica_id >= 0:
            return ALLOW
        return self._consume(request.api_key, items, who, now)

    def give_back_request(self, request: RequestView, items: list[Item], who: Identity, now: float) -> None:
        for item in items:
            if item.size == 0 or not item.topic:
                continue
            limited = self._produced.find(item.topic, item.partition, now)
            if limited is not None:
                self._give_back(limited.bucket, item, who, now)
            bucket = self._produced_by_source.find(item, who, now)
            if bucket is not None:
                self._give_back(bucket, item, who, now)

    def _give_back(self, bucket: Bucket, item: Item, who: Identity, now: float) -> None:
        if item.error_code == UNCHARGED:
            self._advances.give_back(bucket, item.size, who, now)
        else:
            bucket.give_back(float(item.size), now, who)

    def _give_back_rejected(
        self, request: RequestView, response: ResponseView, who: Identity, now: float
    ) -> None:
        """Take back what the broker has not appended: a client without the right to write would use up the
        limit of those who have it.
        """
        for item, error_code in not_appended(request, response):
            if item.size == 0 or not item.topic:
                continue
            if item.error_code == UNCHARGED:
                limited = self._produced.find(item.topic, item.partition, now)
                if limited is not None:
                    self._advances.give_back(limited.bucket, item.size, who, now)
            writable = not not_writable(error_code)
            self._produced.give_back(item.topic, item.partition, _charged_size(item), now, who, writable)
            bucket = self._produced_by_source.find(item, who, now)
            if bucket is not None:
                self._give_back(bucket, item, who, now)

    def _charge_appended(
        self, request: RequestView, response: ResponseView, who: Identity, now: float
    ) -> Verdict:
        """Charge what was not charged before, and has been appended."""
        items = appended_items(request, response)
        return combine(self._produce(items, who, now), self._use(items, who, now))

    def _produce(self, items: list[Item], who: Identity, now: float) -> Verdict:
        verdict = ALLOW
        produced = self._produced
        for item in items:
            size = item.size
            if size == 0:
                continue
            limited = produced.of(item, now)
            if limited is None:
                continue
            bucket = limited.bucket
            uncharged = item.error_code == UNCHARGED
            seconds = bucket.record(0.0 if uncharged else float(size), now, who)
            if seconds > 0.0 and (limited.action == THROTTLE or bucket.observed):
                verdict = combine(
                    verdict, Verdict(seconds, bucket=bucket, ahead_seconds=bucket.ahead_seconds)
                )
            if uncharged:
                verdict = combine(verdict, self._advances.charge(bucket, size, who, now))
        return verdict

    def _use(self, items: list[Item], who: Identity, now: float) -> Verdict:
        """Charge the limits of the source; the longest wait counts."""
        sourced = self._produced_by_source
        if not sourced.any:
            return ALLOW
        verdict = ALLOW
        for item in items:
            bucket = sourced.find(item, who, now) if item.size > 0 and item.topic else None
            if bucket is None:
                continue
            seconds = bucket.record(float(_charged_size(item)), now, who)
            if seconds > 0.0:
                verdict = combine(
                    verdict, Verdict(seconds, bucket=bucket, ahead_seconds=bucket.ahead_seconds)
                )
            if item.error_code == UNCHARGED:
                verdict = combine(verdict, self._advances.charge(bucket, item.size, who, now))
        return verdict

    def _consume(self, api_key: int, items: list[Item], who: Identity, now: float) -> Verdict:
        verdict = ALLOW
        consumer: Consumer | None = None
        for item in items:
            if item.size == 0 or not item.topic:
                continue
            if consumer is None:
                consumer = self._lately.consumer(who, now)
            verdict = self._consume_item(item, consumer, api_key, who, verdict, now)
        return verdict

    def _consume_item(
        self, item: Item, consumer: Consumer, api_key: int, who: Identity, verdict: Verdict, now: float
    ) -> Verdict:
        """Charge an item. Return its wait, or `verdict` if that is longer."""
        limited = self._consumed.of(item, now)
        if limited is not None and limited.omits and api_key == FETCH:
            charge_omittable(limited.bucket, item.size, who, now)
        elif limited is not None:
            consumer.got(limited.bucket, now, limited)
            verdict = _charge(limited.bucket, item.size, who, verdict, now)
        sourced = self._consumed_by_source.find(item, who, now)
        if sourced is not None:
            consumer.got(sourced, now)
            verdict = _charge(sourced, item.size, who, verdict, now)
        return verdict

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        return replica_id < 0 and self._consumed.action(topic) == OMIT

    def plan_consumer_fetch(self, plan: ConsumerPlan, who: Identity, now: float) -> None:
        self._omitting.plan(plan, now)

    def configure(self, limits: Limits, now: float) -> None:
        configs = self._configs
        self._produced.configure(limits.resources, byte_rate_rule(limits, configs.produced.name), now)
        rule = byte_rate_rule(limits, configs.consumed.name, repays=True)
        self._consumed.configure(limits.resources, rule, now)
        self.rejects = self._produced.acts(REJECT) and not self._produced.observed
        # A source gives limits of partitions, not of topics.
        source = None if configs.whole_topic else limits.source
        sourced_rule = byte_rate_rule(limits, "producer_byte_rate")
        self._produced_by_source.configure(source, sourced_rule, now)
        rule = byte_rate_rule(limits, "consumer_byte_rate", repays=True)
        self._consumed_by_source.configure(source, rule, now)
        sourced = self._produced_by_source.any
        self.active = self._produced.any or self._consumed.any or sourced
        by_topic = self._produced.any and not self._produced.observed
        self.limits_topics = by_topic or (sourced and not sourced_rule.observed)
        produce = (PRODUCE,) if self._produced.any or sourced else ()
        consume = (FETCH, SHARE_FETCH) if self._consumed.any or sourced else ()
        self.item_api_keys = produce + consume
        self.omits = self._consumed.acts(OMIT) and not self._consumed.observed
        self.limits_fetches = len(consume) > 0

    def begin_with(self, first_parts: FirstParts) -> None:
        for buckets in (self._produced, self._consumed):
            buckets.first_parts = first_parts
        for sourced in (self._produced_by_source, self._consumed_by_source):
            sourced.first_parts = first_parts

    def live(self) -> list[Bucket]:
        sourced = self._produced_by_source.live() + self._consumed_by_source.live()
        return self._produced.live() + self._consumed.live() + sourced

    def forget_idle(self, now: float) -> bool:
        if not self._forgets_consumed:
            self._forgets_consumed = not self._produced.forget_idle(now)
            return True
        if self._consumed.forget_idle(now):
            return True
        self._forgets_consumed = False
        self._produced_by_source.forget_idle(now)
        self._consumed_by_source.forget_idle(now)
        self._advances.forget_idle(now)
        self._lately.forget(now)
        return False


def _charged_size(item: Item) -> native:
    """The bytes of an item that are charged with the request."""
    if item.error_code == UNCHARGED:
        return 0
    return item.size


def _charge(bucket: Bucket, size: int, who: Identity, verdict: Verdict, now: float) -> Verdict:
    """Charge records; return the wait for them, or `verdict` if that is longer."""
    seconds = bucket.record(float(size), now, who)
    return verdict if seconds <= verdict.throttle_seconds else Verdict(seconds, bucket=bucket)


KIND: Final = QuotaKind(
    name="topic_partition_bytes",
    keys=(),
    scope=PER_BROKER,
    build=TopicPartitionBytes,
    configs=PARTITION_CONFIGS.all,
)
