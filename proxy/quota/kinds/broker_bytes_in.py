"""Bytes of records per second that a broker, and each topic on it, accepts: the broker-side quota, version 1.

    rate        the record bytes that are admitted, per broker and per topic on the broker, as a one-minute
                moving average that is updated every five seconds (EwmaRate, Kafka's BytesInPerSec)
    threshold   of the broker: total.bytes.in.per.sec.threshold
                of a topic: bytes.in.per.sec.threshold, or an equal share of the rest:
                (total - sum of the topics' own thresholds) / number of topics without their own

Partitions of a Produce request are rejected while both the broker's and the topic's rate are over their
thresholds; the rest of the request is forwarded. Bytes that the broker then rejects itself, such as batches
that are too large, are taken out of the rates, and counted as error bytes. The bytes of a user who has not
written to the topic lately enter the rates when the broker has appended them (proxy.quota.known_writers).

A topic is on a broker if the broker leads one of its partitions. The shares are computed again when a leader
or a config changes. Internal topics have no share: they are rejected only if they have a threshold of their
own.
"""

from collections.abc import Mapping
from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.cluster_view import ClusterView
from proxy.quota.config_check import ConfigCheck
from proxy.quota.identity import Identity
from proxy.quota.limits.config_keys import BYTES_IN_THRESHOLD, TOTAL_BYTES_IN_THRESHOLD
from proxy.quota.limits.enforcement import ENFORCE, UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.own_values import OwnValues
from proxy.quota.limits.resources import (
    BROKER,
    DEFAULT_RESOURCE,
    NO_RESOURCES,
    TOPIC,
    ConfigResource,
    Resources,
)
from proxy.quota.limits.topic_limits import internal, topic_limit
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.not_appended import appended_items, not_appended
from proxy.quota.quota import PER_BROKER, Quota, QuotaKind
from proxy.quota.usage import REST
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import PRODUCE
from proxy.wire.views import UNCHARGED, UNKNOWN, Item, RequestView, ResponseView

API_KEYS: Final = (PRODUCE,)
TOTAL: Final = TOTAL_BYTES_IN_THRESHOLD.name
SHARE: Final = BYTES_IN_THRESHOLD.name
TOPICS_AT_MOST: Final = 100_000
"""The maximum number of topics with a rate of their own. A further topic that is not on the broker counts
only in the broker's rate, because clients can name any topic.
"""
ERRORS_AT_MOST: Final = 1000
"""Pairs of topic and error that are counted individually; the others are added up under REST."""


@final
class ErrorBytes:
    """The records of a topic that the broker itself rejected with one error."""

    __slots__ = ("bytes", "partitions")

    def __init__(self) -> None:
        self.bytes = 0
        self.partitions = 0
        """How often it rejected a partition of a request."""


@final
class BrokerBytesIn(Quota):
    """The rates into one broker."""

    def __init__(self) -> None:
        super().__init__(API_KEYS)
        self._resources: Resources = NO_RESOURCES
        self._rule = RateRule(averages=True)
        self._total = self._bucket(TOTAL, "", UNLIMITED, 0.0)
        self._topics: Final[dict[str, Bucket]] = {}
        self._last_topic = ""
        """The topic of the last look-up, empty for none, and its bucket: many requests have one topic. Each
        connection has an object of its own for the name, and comparing two costs less than a look-up.
        """
        self._last = self._total
        self._placed: frozenset[str] = frozenset()
        """The topics on the broker."""
        self._share = UNLIMITED
        self._share_of_one_more = UNLIMITED
        """The share of a new topic that is not in the metadata yet."""
        self.error_bytes = 0
        """The bytes that the broker itself rejected."""
        self.errors: Final[dict[tuple[str, int], ErrorBytes]] = {}
        """The same by topic and error code; read-only."""
        self.active = False

    def _bucket(self, key: str, topic: str, limit: float, now: float) -> Bucket:
        return Bucket(quota=key, limit=limit, rule=self._rule, now=now, topic=topic)

    def rejects_now(self, now: float) -> bool:
        return self._total.over(now)

    def reject(self, items: list[Item], over: dict[int, Bucket], now: float) -> None:
        if not self._total.over(now):
            return
        for index, item in enumerate(items):
            bucket = self._topics.get(item.topic)
            if bucket is not None and bucket.over(now):
                over.setdefault(index, bucket)

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        size = request.items_size
        if size == UNKNOWN or request.topics != 1 or request.uncharged:
            self._record(request.items, now)
        elif size > 0:
            self._record_topic(request.items[0].topic, size, now)
            self._total.record(float(size), now)
        return ALLOW

    def charge_items(self, request: RequestView, items: list[Item], who: Identity, now: float) -> Verdict:
        self._record(items, now)
        return ALLOW

    def give_back_request(self, request: RequestView, items: list[Item], who: Identity, now: float) -> None:
        for item in items:
            if item.error_code != UNCHARGED:
                self._take_back(item, now)

    def _record(self, items: list[Item], now: float) -> None:
        """Count the records by topic: a message has the partitions of a topic side by side."""
        total: native = 0
        size: native = 0
        topic = ""
        for item in items:
            if item.error_code == UNCHARGED:
                continue
            if item.topic is not topic and item.topic != topic:
                self._record_topic(topic, size, now)
                topic = item.topic
                size = 0
            size += item.size
            total += item.size
        self._record_topic(topic, size, now)
        if total > 0:
            self._total.record(float(total), now)

    def _record_topic(self, topic: str, size: native, now: float) -> None:
        bucket = self._topic(topic, now) if size > 0 else None
        if bucket is not None:
            bucket.record(float(size), now)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        if response.items:  # only partitions with an error
            for item, error_code in not_appended(request, response):
                self._give_back(item, error_code, now)
        if request.uncharged:
            self._record(appended_items(request, response), now)
        return ALLOW

    def _give_back(self, item: Item, error_code: int, now: float) -> None:
        self.error_bytes += item.size
        self._count_error(item, error_code)
        if item.error_code != UNCHARGED:
            self._take_back(item, now)

    def _take_back(self, item: Item, now: float) -> None:
        self._total.record(float(-item.size), now)
        bucket = self._topics.get(item.topic)
        if bucket is not None:
            bucket.record(float(-item.size), now)

    def _count_error(self, item: Item, error_code: int) -> None:
        key = (item.topic, error_code)
        errors = self.errors.get(key)
        if errors is None:
            if len(self.errors) >= ERRORS_AT_MOST:
                key = (REST, error_code)
            errors = self.errors.setdefault(key, ErrorBytes())
        errors.partitions += 1
        errors.bytes += item.size

    def _topic(self, topic: str, now: float) -> Bucket | None:
        if (topic is self._last_topic or topic == self._last_topic) and topic:
            return self._last
        bucket = self._topics.get(topic)
        if bucket is None and topic and len(self._topics) < TOPICS_AT_MOST:
            bucket = self._bucket(SHARE, topic, self._threshold(topic), now)
            self._topics[topic] = bucket
        if bucket is not None:
            self._last_topic = topic
            self._last = bucket
        return bucket

    def _threshold(self, topic: str) -> float:
        own = topic_limit(self._resources, topic, BYTES_IN_THRESHOLD)
        if own != UNLIMITED or internal(self._resources, topic):
            return own
        return self._share if topic in self._placed else self._share_of_one_more

    def configure(self, limits: Limits, now: float) -> None:
        self._resources = limits.resources
        total = limits.resources.number(BROKER, str(self.node_id), TOTAL)
        observed = limits.mode(TOTAL) != ENFORCE
        self.active = total is not None
        self.wants_partitions = self.active
        self.item_api_keys = API_KEYS if self.active else ()
        self.rejects = self.limits_topics = self.active and not observed
        self._rule = RateRule(averages=True, mode=limits.mode(TOTAL))
        self._total.configure(UNLIMITED if total is None else total, self._rule, now)
        self._share_out(now)

    def see_cluster(self, view: ClusterView, now: float) -> None:
        if not self.active or not view.has_partitions:
            return
        placed = frozenset([names[0] for names, leader in view.leaders.items() if leader == self.node_id])
        if placed != self._placed:
            self._placed = placed
            self._share_out(now)

    def _share_out(self, now: float) -> None:
        """Compute the topics' thresholds."""
        explicit = 0.0
        without = 0
        for topic in self._placed:
            own = topic_limit(self._resources, topic, BYTES_IN_THRESHOLD)
            if own != UNLIMITED:
                explicit += own
            elif not internal(self._resources, topic):
                without += 1
        left = max(self._total.whole_limit - explicit, 0.0)
        self._share = left / max(without, 1)
        self._share_of_one_more = left / (without + 1)
        if self.active:
            for topic in sorted(self._placed):
                self._topic(topic, now)
        for topic, bucket in self._topics.items():
            bucket.configure(self._threshold(topic), self._rule, now)

    def live(self) -> list[Bucket]:
        """The broker's bucket, and those of its topics that have a threshold."""
        if not self.active:
            return []
        return [self._total, *[bucket for bucket in self._topics.values() if bucket.limit != UNLIMITED]]

    def forget_idle(self, now: float) -> bool:
        idle = [
            topic
            for topic, bucket in self._topics.items()
            if bucket.idle(now) and (topic not in self._placed or not self.active)
        ]
        for topic in idle:
            del self._topics[topic]
        self._last_topic = ""
        return False


@final
class ThresholdCheck(ConfigCheck):
    """The topics' own thresholds must not be more than the total of any broker."""

    def __init__(self, resources: Resources) -> None:
        topics = dict(resources.configured(TOPIC, SHARE))
        topics.pop(DEFAULT_RESOURCE, None)
        self._topics: Final = OwnValues(topics, largest=True)
        self._brokers: Final = OwnValues(resources.configured(BROKER, TOTAL), largest=False)
        self._undo: Final[list[tuple[OwnValues, str, int | None] | None]] = []
        """By change: the value before it; None if the change is about neither threshold."""

    def change(self, resource: ConfigResource, values: Mapping[str, str | None]) -> None:
        key, own = (TOTAL, self._brokers) if resource.type == BROKER else (SHARE, self._topics)
        name = resource.name
        if key not in values or (resource.type == TOPIC and name == DEFAULT_RESOURCE):
            self._undo.append(None)
            return
        self._undo.append((own, name, own.get(name)))
        text = values[key]
        own.put(name, None if text is None else int(text))

    def undo(self) -> None:
        undo = self._undo.pop()
        if undo is not None:
            own, name, before = undo
            own.put(name, before)

    def conflict(self) -> str:
        together = self._topics.total
        for total, broker in self._brokers.first(1):
            if together > total:
                whose = "every broker" if broker == DEFAULT_RESOURCE else f"broker {broker}"
                return (
                    f"{SHARE} of {self._largest()} is {together} in all, more than {TOTAL} of {whose}, "
                    f"which is {total}; lower the one or raise the other"
                )
        return ""

    def _largest(self) -> str:
        """The topics with the largest thresholds, by name."""
        shown = [f"{topic} ({value})" for value, topic in self._topics.first(3)]
        more = self._topics.count - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


KIND: Final = QuotaKind(
    name="broker_bytes_in",
    keys=(),
    scope=PER_BROKER,
    build=BrokerBytesIn,
    configs=(BYTES_IN_THRESHOLD, TOTAL_BYTES_IN_THRESHOLD),
    check=ThresholdCheck,
)
