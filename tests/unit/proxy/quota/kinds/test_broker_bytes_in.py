"""The broker-side quota, version 1: averages, shares, and what is rejected while both are over."""

import math
from collections.abc import Sequence
from random import Random
from typing import Unpack

import pytest

from proxy.quota.cluster_view import ClusterView
from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.kinds.broker_bytes_in import ERRORS_AT_MOST, KIND, BrokerBytesIn, ThresholdCheck
from proxy.quota.limits.config_keys import BYTES_IN_THRESHOLD, TOTAL_BYTES_IN_THRESHOLD
from proxy.quota.limits.enforcement import OBSERVE
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource, Resources
from proxy.quota.measure.bucket import Bucket
from proxy.quota.usage import REST
from proxy.quota.verdict import ALLOW
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.views import UNCHARGED, Item, RequestView, ResponseView
from tests.support.quotas.enforcement import EnforcementOptions, enforcement

WHO = Identity("u", "c", "127.0.0.1")
SHARE, TOTAL = BYTES_IN_THRESHOLD.name, TOTAL_BYTES_IN_THRESHOLD.name
TICK = 5.0


def limits(
    total: str | None = "1000", topics: dict[str, str] | None = None, **settings: Unpack[EnforcementOptions]
) -> Limits:
    brokers = {} if total is None else {"1": {TOTAL: total}}
    return Limits(
        {},
        resources=Resources({t: {SHARE: v} for t, v in (topics or {}).items()}, brokers),
        settings=enforcement(**settings),
    )


def view(*topics: str, elsewhere: Sequence[str] = ()) -> ClusterView:
    leaders = {(topic, 0): 1 for topic in topics} | {(topic, 0): 2 for topic in elsewhere}
    return ClusterView("", {}, {}, leaders)


def quota(configured: Limits | None = None, cluster: ClusterView | None = None) -> BrokerBytesIn:
    made = KIND.build()
    assert isinstance(made, BrokerBytesIn)
    made.join(1, [])
    made.configure(configured or limits(), 0.0)
    made.see_cluster(cluster or view("a", "b", "c"), 0.0)
    return made


def items(**sizes: int) -> list[Item]:
    return [Item(topic, NO_ID, 0, size) for topic, size in sizes.items()]


def admit(made: BrokerBytesIn | QuotaEngine, now: float, **sizes: int) -> RequestView:
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = items(**sizes)
    assert made.admit(request, WHO, now) is ALLOW
    return request


def rejected(made: BrokerBytesIn, now: float, *topics: str) -> dict[str, tuple[str, str]]:
    over: dict[int, Bucket] = {}
    made.reject(items(**dict.fromkeys(topics, 1)), over, now)
    return {topics[index]: (bucket.quota, bucket.topic) for index, bucket in over.items()}


def thresholds(made: BrokerBytesIn) -> dict[str, float]:
    return {bucket.topic: bucket.limit for bucket in made.live()}


def test_the_rates_are_kafkas_one_minute_averages() -> None:
    made = quota()
    admit(made, 0.0, a=5000, b=2500)
    total, a, b, c = made.live()
    assert [bucket.measure(TICK) for bucket in (total, a, b, c)] == [1500, 1000, 500, 0]
    admit(made, TICK, a=10_000)
    kept = math.exp(-TICK / 60)
    assert a.measure(2 * TICK) == pytest.approx(2000 + kept * (1000 - 2000))


def test_each_topic_counts_all_its_partitions_in_any_order() -> None:
    made = quota()
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    sizes = [("a", 0, 100), ("a", 1, 400), ("b", 0, 50), ("", 0, 7), ("a", 2, 500), ("c", 0, 0)]
    request.items = [Item(topic, NO_ID, partition, size) for topic, partition, size in sizes]
    assert made.admit(request, WHO, 0.0) is ALLOW
    assert [bucket.used for bucket in made.live()] == [1057, 1000, 50, 0]


def test_rejected_only_while_the_broker_and_the_topic_are_over() -> None:
    made = quota(limits("1000", {"a": "400", "b": "400"}))
    admit(made, 0.0, a=2500, b=1000)
    assert rejected(made, 4.9, "a", "b", "c") == {}, "not before the first tick"
    assert rejected(made, TICK, "a", "b", "c") == {}, "the topic alone is over"
    made = quota(limits("1000", {"a": "400", "b": "400"}))
    admit(made, 0.0, a=2500, b=1000, c=2000)
    assert rejected(made, TICK, "a", "b", "c", "d") == {"a": (SHARE, "a"), "c": (SHARE, "c")}
    made.configure(limits("2000", {"a": "400", "b": "400"}), TICK)
    assert rejected(made, TICK, "a") == {}


def test_nothing_is_rejected_now_while_the_broker_is_within_its_total() -> None:
    made = quota(limits("1000", {"a": "400"}))
    admit(made, 0.0, a=5000)
    assert not made.rejects_now(TICK), "at the total"
    admit(made, TICK, a=50_000)
    assert made.rejects_now(2 * TICK)


def test_only_what_is_admitted_counts_so_the_rate_comes_down_again() -> None:
    made = quota(limits("100"))
    admit(made, 0.0, a=1000)
    now = TICK
    while rejected(made, now, "a"):
        now += TICK
    assert now == TICK * (1 + math.ceil(math.log(100 / 200) / math.log(math.exp(-TICK / 60))))


def test_what_the_broker_rejects_is_taken_back() -> None:
    made = quota()
    request = admit(made, 0.0, a=5000, b=2500)
    response = ResponseView(9, True, 100)
    response.items = [
        Item("a", NO_ID, 0, 0, error_code=10),
        Item("b", NO_ID, 0, 0),
        Item("x", NO_ID, 0, 0, error_code=3),
    ]
    assert made.charge(request, response, WHO, 0.0) is ALLOW
    total, a, b, _ = made.live()
    assert [bucket.measure(TICK) for bucket in (total, a, b)] == [500, 0, 500]
    assert made.error_bytes == 5000


@pytest.mark.parametrize("error_code", [7, 20])
def test_what_the_broker_has_appended_stays_although_its_replication_is_late(error_code: int) -> None:
    made = quota()
    request = admit(made, 0.0, a=5000)
    response = ResponseView(9, True, 100)
    response.items = [Item("a", NO_ID, 0, 0, error_code=error_code)]
    made.charge(request, response, WHO, 0.0)
    assert made.live()[0].measure(TICK) == 1000
    assert (made.error_bytes, made.errors) == (0, {})


def test_what_a_large_request_had_is_taken_back() -> None:
    """Its items have been forwarded one by one."""
    made = quota()
    request = admit(made, 0.0, a=5000)
    request.sent, request.items = request.items, []
    response = ResponseView(9, True, 100)
    response.items = [Item("a", NO_ID, 0, 0, error_code=10)] * 2
    made.charge(request, response, WHO, 0.0)
    assert made.live()[0].measure(TICK) == 0
    assert made.error_bytes == 5000


def test_what_a_user_without_rights_may_have_sent_counts_when_it_is_appended() -> None:
    made = quota()
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = items(a=5000, b=2500)
    for item in request.items:
        item.error_code = UNCHARGED
    request.uncharged = True
    assert made.admit(request, WHO, 0.0) is ALLOW
    made.give_back_request(request, request.items, WHO, 0.0)
    assert [bucket.used for bucket in made.live()] == [0, 0, 0, 0]
    response = ResponseView(9, True, 100)
    response.items = [Item("b", NO_ID, 0, 0, error_code=29)]
    assert made.charge(request, response, WHO, 0.0) is ALLOW
    assert [bucket.used for bucket in made.live()] == [5000, 5000, 0, 0]
    assert made.error_bytes == 2500


def test_errors_are_counted_by_topic_and_code_within_bounds() -> None:
    made = quota()
    for number in range(ERRORS_AT_MOST + 5):
        request = admit(made, 0.0, **{f"t{number}": 10})
        response = ResponseView(9, True, 100)
        response.items = [Item(f"t{number}", NO_ID, 0, 0, error_code=10)]
        made.charge(request, response, WHO, 0.0)
    assert (made.errors["t3", 10].bytes, made.errors["t3", 10].partitions) == (10, 1)
    assert (made.errors[REST, 10].bytes, made.errors[REST, 10].partitions) == (50, 5)
    assert len(made.errors) == ERRORS_AT_MOST + 1


def test_rejected_bytes_are_matched_by_topic_id() -> None:
    made = quota()
    topic_id = bytes(15) + b"\x01"
    request = RequestView(PRODUCE, 13, 1, "c", 10_000)
    request.items = [Item("", topic_id, 0, 5000)]
    made.admit(request, WHO, 0.0)
    response = ResponseView(13, True, 100)
    response.items = [Item("a", topic_id, 0, 0, error_code=10)]
    made.charge(request, response, WHO, 0.0)
    assert made.live()[0].measure(TICK) == 0


def test_topics_without_a_threshold_share_what_is_left() -> None:
    made = quota(limits("1000", {"a": "400"}))
    assert thresholds(made) == {"": 1000, "a": 400, "b": 300, "c": 300}
    made.see_cluster(view("a", "b", "c", "d"), 1.0)
    assert thresholds(made) == {"": 1000, "a": 400, "b": 200, "c": 200, "d": 200}
    made.see_cluster(view("a", "b", elsewhere=["e"]), 2.0)
    assert thresholds(made)["b"] == 600
    made.configure(limits("1000", {"a": "500", "b": "100"}), 3.0)
    assert (thresholds(made)["a"], thresholds(made)["b"]) == (500, 100)


def test_a_view_without_partitions_changes_nothing() -> None:
    made = quota(limits("1000"))
    made.see_cluster(ClusterView("", {}, {}), 1.0)
    assert thresholds(made) == {"": 1000, "a": 1000 / 3, "b": 1000 / 3, "c": 1000 / 3}


def test_the_topics_share_the_whole_limit_whatever_part_of_it_this_process_may_use() -> None:
    made = quota(limits("1000"), view("a", "b"))
    admit(made, 0.0, a=10)
    total = made.live()[0]
    total.share(0.25, 1.0)
    made.see_cluster(view("a", "b", "c", "d"), 2.0)
    assert thresholds(made)["a"] == 250
    assert total.limit == 250


def test_a_topic_that_is_not_on_the_broker_yet_has_the_share_of_one_more() -> None:
    made = quota(limits("1000", {"a": "400"}))
    admit(made, 0.0, new=10)
    assert thresholds(made)["new"] == 200
    made.see_cluster(view("a", "b", "c", "new"), 1.0)
    assert thresholds(made)["new"] == 200


def test_the_default_threshold_applies_to_each_topic() -> None:
    made = quota(limits("1000", {DEFAULT_RESOURCE: "150", "a": "400"}))
    assert thresholds(made) == {"": 1000, "a": 400, "b": 150, "c": 150}


def test_internal_topics_have_no_share_and_are_not_rejected() -> None:
    made = quota(limits("100"), view("a", "__consumer_offsets"))
    assert thresholds(made) == {"": 100, "a": 100}
    admit(made, 0.0, __consumer_offsets=5000)
    assert rejected(made, TICK, "__consumer_offsets") == {}


def test_without_a_total_the_quota_is_inactive() -> None:
    made = quota(limits(None, {"a": "400"}))
    assert (made.active, made.rejects, made.wants_partitions, made.item_api_keys) == (False, False, False, ())
    assert made.live() == []
    made.configure(limits("1000", {"a": "400"}), 0.0)
    assert (made.active, made.rejects, made.wants_partitions, made.item_api_keys) == (True, True, True, (0,))
    made.see_cluster(view("a", "b", "c"), 0.0)
    assert thresholds(made)["b"] == 300


def test_the_default_brokers_total_is_for_every_broker_without_its_own() -> None:
    resources = Resources({}, {DEFAULT_RESOURCE: {TOTAL: "500"}, "1": {TOTAL: "700"}})
    made = quota(Limits({}, resources=resources))
    assert made.live()[0].limit == 700
    other = KIND.build()
    other.join(2, [])
    other.configure(Limits({}, resources=resources), 0.0)
    assert other.live()[0].limit == 500


def test_observed_it_rejects_nothing() -> None:
    engine = QuotaEngine([quota()])
    engine.configure(limits("100", mode=OBSERVE), 0.0)
    request = admit(engine, 0.0, a=5000)
    assert engine.reject(request, WHO, TICK).items == []
    engine.configure(limits("100"), TICK)
    assert engine.reject(request, WHO, TICK).items == [0]


def test_large_requests_count_as_they_pass() -> None:
    made = quota()
    made.charge_items(RequestView(PRODUCE, 9, 1, "c", 10_000), items(a=5000), WHO, 0.0)
    assert made.live()[0].measure(TICK) == 1000


def test_topics_that_are_gone_are_forgotten_when_idle() -> None:
    made = quota()
    admit(made, 0.0, a=1, gone=1)
    made.forget_idle(3599.0)
    assert "gone" in thresholds(made)
    made.forget_idle(3600.0)
    assert sorted(thresholds(made)) == ["", "a", "b", "c"]
    admit(made, 3601.0, gone=1)
    assert "gone" in thresholds(made), "its bucket is a new one"


@pytest.mark.parametrize(
    ("topics", "brokers", "says"),
    [
        ({"a": "60", "b": "40"}, {DEFAULT_RESOURCE: "100"}, ""),
        ({"a": "60", "b": "41"}, {}, ""),
        (
            {"a": "60", "b": "41"},
            {DEFAULT_RESOURCE: "100"},
            "bytes.in.per.sec.threshold of a (60), b (41) is 101 in all, more than "
            "total.bytes.in.per.sec.threshold of every broker, which is 100; "
            "lower the one or raise the other",
        ),
        (
            {"a": "1", "b": "2", "c": "3", "d": "4", DEFAULT_RESOURCE: "99"},
            {DEFAULT_RESOURCE: "100", "2": "9"},
            "bytes.in.per.sec.threshold of d (4), c (3), b (2) and 1 more is 10 in all, more than "
            "total.bytes.in.per.sec.threshold of broker 2, which is 9; lower the one or raise the other",
        ),
    ],
)
def test_the_explicit_thresholds_have_to_fit_into_every_total(
    topics: dict[str, str], brokers: dict[str, str], says: str
) -> None:
    resources = resources_of(topics, brokers)
    assert ThresholdCheck(resources).conflict() == says
    assert KIND.check is ThresholdCheck


def test_changes_of_thresholds_are_checked_one_by_one() -> None:
    """The same as a check of all values; each change can be undone."""
    random = Random(7)
    topics, brokers = {f"t{n}": str(n + 1) for n in range(9)}, {"1": "60", "2": "80"}
    check = ThresholdCheck(resources_of(topics, brokers))
    states = [(dict(topics), dict(brokers))]
    for _ in range(2000):
        if len(states) > 1 and random.random() < 0.4:
            check.undo()
            states.pop()
        else:
            topics, brokers = map(dict, states[-1])
            type, name = random.choice(
                [(TOPIC, f"t{random.randrange(12)}"), (BROKER, f"{random.randrange(4)}")]
            )
            value = random.choice([None, str(random.randrange(1, 30)), str(random.randrange(50, 90))])
            key, changed = (SHARE, topics) if type == TOPIC else (TOTAL, brokers)
            check.change(ConfigResource(type, name), {key: value, "other": "5"})
            check.change(ConfigResource(type, name), {"other": None})
            check.undo()
            changed.pop(name, None)
            if value is not None:
                changed[name] = value
            states.append((topics, brokers))
        assert check.conflict() == ThresholdCheck(resources_of(*states[-1])).conflict()


def test_the_default_topic_has_no_threshold_of_its_own() -> None:
    check = ThresholdCheck(resources_of({"t": "5"}, {DEFAULT_RESOURCE: "10"}))
    check.change(ConfigResource(TOPIC, DEFAULT_RESOURCE), {SHARE: "99"})
    assert check.conflict() == ""
    check.undo()


def resources_of(topics: dict[str, str], brokers: dict[str, str]) -> Resources:
    return Resources(
        {topic: {SHARE: value} for topic, value in topics.items()},
        {broker: {TOTAL: value} for broker, value in brokers.items()},
    )


def of_one_topic(sizes: list[int]) -> RequestView:
    """A request of partitions of these sizes, as the reader of a whole message leaves it."""
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = [Item("a", NO_ID, number, size) for number, size in enumerate(sizes)]
    request.items_size = sum(sizes)
    request.topics = 1
    return request


def test_a_request_of_one_topic_is_charged_with_the_sum_of_its_partitions() -> None:
    made = quota()
    made.admit(of_one_topic([700, 0, 300]), WHO, 0.0)
    total, a, *_ = made.live()
    assert (total.used, a.used) == (1000.0, 1000.0)
    made.admit(of_one_topic([0]), WHO, 0.0)
    made.admit(of_one_topic([]), WHO, 0.0)
    assert (total.used, a.used) == (1000.0, 1000.0)


def test_of_one_topic_too_what_is_charged_later_is_not_charged_at_once() -> None:
    made = quota()
    request = of_one_topic([700, 300])
    request.items[1].error_code = UNCHARGED
    request.uncharged = True
    made.admit(request, WHO, 0.0)
    total, a, *_ = made.live()
    assert (total.used, a.used) == (700.0, 700.0)
