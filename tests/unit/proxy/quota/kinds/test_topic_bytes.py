"""A topic's quota: one limit for all its partitions, on all brokers."""

from time import thread_time

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.engines import ALL_BROKERS, QuotaEngines
from proxy.quota.fetch.consumer_plan import ConsumerItem, ConsumerPlan
from proxy.quota.identity import ANONYMOUS, Identity
from proxy.quota.kinds import topic_bytes, topic_partition_bytes
from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    OMIT,
    REJECT,
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE_ACTION,
    TOPIC_PRODUCER_BYTE_RATE,
    TOPIC_PRODUCER_BYTE_RATE_ACTION,
)
from proxy.quota.limits.limit_source import LimitSource, SourcedLimit
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import DEFAULT_RESOURCE, Resources
from proxy.quota.quota import Quota
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_PARTITION
from proxy.wire.fetch.rewrite import Watermarks
from proxy.wire.views import RequestView
from tests.support.present import present
from tests.support.quotas.buckets import live_by_node
from tests.support.quotas.partition_quota import charge, items, produce

WHO = Identity(ANONYMOUS, "c", "127.0.0.1")
IN, OUT = TOPIC_PRODUCER_BYTE_RATE.name, TOPIC_CONSUMER_BYTE_RATE.name
BOTH = {"orders": {IN: "1000", OUT: "1000"}}
OMITTING = {"orders": {OUT: "1000", TOPIC_CONSUMER_BYTE_RATE_ACTION.name: OMIT}}
REJECTING = {"orders": {IN: "1000", TOPIC_PRODUCER_BYTE_RATE_ACTION.name: REJECT}}


class ByPartition(LimitSource):
    def find(
        self, key: str, user: str, client_id: str, now: float, topic: str = "", partition: int = NO_PARTITION
    ) -> SourcedLimit:
        return SourcedLimit(user, client_id, 1.0)


def engines(
    topics: dict[str, dict[str, str]] | None = None, proxy_topics: frozenset[str] = frozenset()
) -> QuotaEngines:
    kinds = [topic_bytes.KIND, topic_partition_bytes.KIND]
    return QuotaEngines(kinds, Limits({}, resources=Resources(topics or BOTH, proxy_topics=proxy_topics)))


def producing(
    at: QuotaEngines, node_id: int, *sizes: int, now: float = 0.0, topic: str = "orders"
) -> Verdict:
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = items(*sizes, topic=topic)
    return at.engine(node_id, now).admit(request, WHO, now)


def plan(of: QuotaEngine | Quota, fetched: list[ConsumerItem], now: float = 0.0) -> list[bool]:
    made = ConsumerPlan(fetched)
    of.plan_consumer_fetch(made, WHO, now)
    return [item.omitted for item in fetched]


def fetched(*partitions: int, max_bytes: int = 1 << 20) -> list[ConsumerItem]:
    found = [ConsumerItem("orders", partition, Watermarks()) for partition in partitions]
    for item in found:
        item.max_bytes = max_bytes
    return found


def test_partitions_on_all_brokers_share_one_limit() -> None:
    made = engines()
    assert producing(made, 1, 400, 300) is ALLOW
    assert producing(made, 2, 300) is ALLOW
    verdict = producing(made, 3, 0, 0, 500)
    assert verdict.throttle_seconds == pytest.approx(0.5)
    assert (
        present(verdict.bucket).quota,
        present(verdict.bucket).topic,
        present(verdict.bucket).partition,
    ) == (
        IN,
        "orders",
        NO_PARTITION,
    )
    assert [(node_id, bucket.used) for node_id, bucket in live_by_node(made)] == [(ALL_BROKERS, 1500.0)]


def test_consumers_of_all_partitions_share_one_limit() -> None:
    made = topic_bytes.KIND.build()
    made.configure(Limits({}, resources=Resources(BOTH)), 0.0)
    assert charge(made, 2000, 1000).throttle_seconds == pytest.approx(2.0)
    assert charge(made, 100, replica_id=2) is ALLOW
    assert len(made.live()) == 1


def test_each_topic_has_its_own_limit_by_default_but_internal_ones() -> None:
    made = engines({DEFAULT_RESOURCE: {IN: "1000"}}, proxy_topics=frozenset(["own"]))
    assert producing(made, 1, 1000, topic="a") is ALLOW
    assert producing(made, 2, 1000, topic="b") is ALLOW
    assert producing(made, 2, 1, topic="a").throttle_seconds > 0.0
    for topic in ("own", "__consumer_offsets", ""):
        assert producing(made, 1, 9000, topic=topic) is ALLOW


def test_a_topic_over_its_limit_is_rejected_at_every_broker() -> None:
    made = engines(REJECTING)
    assert producing(made, 1, 600, 600) is ALLOW
    for node_id in (1, 2):
        request = RequestView(PRODUCE, 9, 1, "c", 10_000)
        request.items = [*items(1, 1), *items(1, topic="others")]
        assert made.engine(node_id, 0.0).reject(request, WHO, 0.0).items == [0, 1]


def test_a_topic_over_its_limit_is_omitted_and_one_below_it_is_bounded_as_a_whole() -> None:
    made = topic_bytes.KIND.build()
    made.configure(Limits({}, resources=Resources(OMITTING)), 0.0)
    assert charge(made, 3000) is ALLOW
    over = fetched(0, 1, 2)
    assert plan(made, over) == [True, True, True]
    for item in over:
        item.end()
    back = fetched(0, 1, 2, 3, 4)
    plan(made, back, now=3.0)
    allowed = [item for item in back if not item.omitted]
    assert allowed
    assert sum(item.bound for item in allowed) <= 1000


def test_the_time_of_a_plan_is_proportional_to_its_partitions() -> None:
    """A fetch that names two topics in turn, or thousands, stopped the event loop for a second."""

    def seconds(number: int) -> float:
        made = engines({DEFAULT_RESOURCE: OMITTING["orders"]}).engine(1, 0.0)
        asked = [ConsumerItem("ab"[at % 2], at, Watermarks()) for at in range(number)]
        began = thread_time()
        plan(made, asked)
        return thread_time() - began

    few, many = (min(seconds(number) for _ in range(3)) for number in (250, 4000))
    assert many < 64 * few, "16 times as many, and 256 is the square of that"


def test_partitions_and_the_topic_may_both_be_omitted() -> None:
    configs = {**OMITTING["orders"], CONSUMER_BYTE_RATE.name: "1000", CONSUMER_BYTE_RATE_ACTION.name: OMIT}
    made = engines({"orders": configs})
    engine = made.engine(1, 0.0)
    for quota in engine.active:
        charge(quota, 900)
    both = fetched(0, 1)
    for now in (0.0, 0.1, 0.2, 5.0, 5.1):
        plan(engine, both, now)
    for quota in engine.active:
        charge(quota, 5000, now=5.1)
    assert plan(engine, both, now=5.2) == [True, True]
    for item in both:
        item.end()
    queues = [bucket.fetch_queue for _, bucket in live_by_node(made)]
    assert all(queue.waiting == 0 and queue.reserved(5.2) == 0.0 for queue in queues if queue)


def test_one_broker_gives_back_what_another_broker_may_use() -> None:
    made = topic_bytes.KIND.build()
    made.configure(Limits({}, resources=Resources(BOTH)), 0.0)
    produce(made, 2000)
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = items(2000)
    made.give_back_request(request, request.items, WHO, 0.0)
    assert produce(made, 1000, now=0.0) is ALLOW


def test_a_source_of_limits_does_not_limit_topics() -> None:
    made = topic_bytes.KIND.build()
    made.configure(Limits({}, source=ByPartition(by_partition=True)), 0.0)
    assert not made.active
    assert produce(made, 9000) is ALLOW
