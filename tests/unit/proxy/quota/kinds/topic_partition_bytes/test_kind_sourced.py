"""A partition's quota with limits of a source, such as a quota callback, beside limits of topics.

The source gives each user 1000 bytes per second in and 500 out, for each partition of `orders`.
"""

from typing import Any

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.limits.limit_source import LimitSource, SourcedLimit
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.quota.verdict import ALLOW
from proxy.wire.api_keys import FETCH, PRODUCE, SHARE_FETCH
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.quotas.enforcement import enforcement
from tests.support.quotas.forgetting import forget_idle
from tests.support.quotas.partition_quota import IN, OUT, WHO, charge, fetch, items, produce, quota, response
from tests.support.sharing.members import a_quarter

IN_BY_SOURCE, OUT_BY_SOURCE = "producer_byte_rate", "consumer_byte_rate"
INVALID_TOPIC = 17


class Rules(LimitSource):
    """`begins_at`: the time before which it gives no limits."""

    def __init__(self, by_partition: bool = True, begins_at: float = 0.0) -> None:
        super().__init__(by_partition)
        self.begins_at = begins_at

    def find(
        self, key: str, user: str, client_id: str, now: float, topic: str = "", partition: int = -1
    ) -> SourcedLimit | None:
        if topic != "orders":
            return None
        limit = 1000.0 if key == IN_BY_SOURCE else 500.0
        keep = self.begins_at == 0.0
        return SourcedLimit(
            f"{user} {partition}", "", limit if now >= self.begins_at else UNLIMITED, keep=keep
        )


def sourced(
    topics: dict[str, dict[str, str]] | None = None, source: Rules | None = None, **settings: Any
) -> Any:
    resources = Resources(topics or {})
    return quota(Limits({}, resources=resources, settings=enforcement(**settings), source=source or Rules()))


def producing(*sizes: int, topic: str = "orders") -> RequestView:
    request = RequestView(PRODUCE, 9, 1, "c", 10_000)
    request.items = items(*sizes, topic=topic)
    return request


def owed(made: Any) -> dict[str | int, float]:
    """The bytes that each bucket lacks, by the user or the partition in its name."""
    return {bucket.user or bucket.partition: max(-bucket.tokens.measure(0.0), 0.0) for bucket in made.live()}


@pytest.mark.parametrize("by_partition", [False, True])
def test_only_a_source_with_limits_of_partitions_needs_items(by_partition: bool) -> None:
    made = sourced(source=Rules(by_partition))
    assert made.active is made.limits_topics is made.limits_fetches is by_partition
    assert made.item_api_keys == ((PRODUCE, FETCH, SHARE_FETCH) if by_partition else ())


def test_observed_limits_of_a_source_limit_no_topic() -> None:
    made = sourced(mode=OBSERVE)
    assert made.active
    assert not made.limits_topics


@pytest.mark.parametrize(("sizes", "worst"), [((500, 2000), "u 1"), ((2000, 500), "u 0")])
def test_a_producer_waits_for_its_worst_partition(sizes: tuple[int, ...], worst: str) -> None:
    made = sourced()
    assert produce(made, 1000, 1000) is ALLOW
    verdict = produce(made, *sizes)
    assert verdict.throttle_seconds == pytest.approx(2.0)
    assert verdict.bucket is not None
    assert (verdict.bucket.quota, verdict.bucket.user) == (IN_BY_SOURCE, worst)


@pytest.mark.parametrize(
    ("topic_limit", "seconds", "quota_key"), [("500", 4.0, IN), ("4000", 1.0, IN_BY_SOURCE)]
)
def test_the_longer_wait_of_the_topics_and_the_sources_limit_counts(
    topic_limit: str, seconds: float, quota_key: str
) -> None:
    made = sourced({"orders": {IN: topic_limit}})
    size = 2500 if topic_limit == "500" else 2000
    verdict = produce(made, size)
    assert verdict.throttle_seconds == pytest.approx(seconds)
    assert verdict.bucket is not None
    assert verdict.bucket.quota == quota_key


def test_topics_that_the_source_does_not_limit_and_unknown_names_pass() -> None:
    made = sourced()
    for topic in ("others", ""):
        assert produce(made, 99_000, topic=topic) is ALLOW
        assert charge(made, 99_000, topic=topic) is ALLOW
    assert made.live() == []


def test_later_items_of_a_large_frame_are_charged() -> None:
    made = sourced()
    produce(made, 1000)
    assert made.charge_items(producing(500), items(500), WHO, 0.0).throttle_seconds == pytest.approx(0.5)
    fetching = RequestView(FETCH, 12, 1, "c", 100)
    assert made.charge_items(fetching, items(1000), WHO, 0.0).throttle_seconds == pytest.approx(1.0)


@pytest.mark.parametrize("api_key", [FETCH, SHARE_FETCH])
def test_a_consumer_waits_for_its_worst_partition_and_so_does_its_next_fetch(api_key: int) -> None:
    made = sourced({"orders": {OUT: "4000"}})
    verdict = charge(made, 600, 1500, api_key=api_key)
    assert verdict.throttle_seconds == pytest.approx(2.0)
    assert verdict.bucket is not None
    assert (verdict.bucket.quota, verdict.bucket.user) == (OUT_BY_SOURCE, "u 1")
    for now, granted in ((1.0, False), (2.5, True)):
        grant = fetch(made, now=now, api_key=api_key)
        assert grant.granted is granted
        grant.end()


def test_both_limits_of_a_partition_are_charged_each_time() -> None:
    made = sourced({"orders": {OUT: "1000"}})
    seconds = [charge(made, 600).throttle_seconds for _ in range(3)]
    assert seconds == pytest.approx([0.2, 1.4, 2.6])
    assert {bucket.quota: bucket.used for bucket in made.live()} == {OUT: 1800.0, OUT_BY_SOURCE: 1800.0}


def test_a_limit_that_begins_later_withholds_records_of_a_known_partition() -> None:
    made = sourced({"orders": {OUT: "10000"}}, Rules(begins_at=5.0))
    charge(made, 100)
    grant = fetch(made)
    charge(made, 1500, now=5.0)
    request = RequestView(FETCH, 12, 1, "c", 100)
    assert made.withholds(request, response(100), WHO, grant, 5.0).quota == OUT_BY_SOURCE


def test_records_of_a_partition_that_the_fetch_was_not_known_to_bring_are_withheld_in_debt() -> None:
    """A client that reconnects is not known to consume a partition, and does not wait for it."""
    made = sourced()
    charge(made, 1500)
    other = Identity("u", "c", "127.0.0.1")
    grant = fetch(made, who=other)
    assert grant.granted
    request = RequestView(FETCH, 12, 1, "c", 100)
    assert made.withholds(request, response(0, 500), other, grant, 0.0) is None
    assert made.withholds(request, response(500, 500), other, grant, 0.0).user == "u 0"
    # Its next fetch waits for the partition.
    for now, granted in ((1.0, False), (2.5, True)):
        later = fetch(made, now=now, who=other)
        assert later.granted is granted
        later.end()


def test_what_the_broker_does_not_append_is_given_back() -> None:
    made = sourced()
    request = producing(3000, 3000, 0)
    made.admit(request, WHO, 0.0)
    response = ResponseView(9, True, 100)
    response.items = [
        Item("orders", NO_ID, 0, 0, b"", INVALID_TOPIC),
        Item("orders", NO_ID, 1, 0),
        Item("orders", NO_ID, 2, 0, b"", INVALID_TOPIC),
    ]
    assert made.charge(request, response, WHO, 0.0) is ALLOW
    assert owed(made) == {"u 0": 0.0, "u 1": 2000.0}


def test_a_request_that_is_not_forwarded_is_given_back() -> None:
    made = sourced({"<default>": {IN: "1000"}})
    request = producing(3000, 0, 3000)
    request.items.append(Item("", NO_ID, 3, 3000))
    made.admit(request, WHO, 0.0)
    assert owed(made) == {0: 2000.0, 2: 2000.0, "u 0": 2000.0, "u 2": 2000.0}
    made.give_back_request(request, request.items, WHO, 0.0)
    assert owed(made) == {0: 0.0, 2: 0.0, "u 0": 0.0, "u 2": 0.0}


def test_buckets_begin_with_their_part_and_are_dropped_when_idle() -> None:
    made = sourced()
    made.begin_with(a_quarter())
    produce(made, 10)
    charge(made, 10)
    assert sorted(bucket.limit for bucket in made.live()) == [125.0, 250.0]
    forget_idle(made, 3600.0)
    assert made.live() == []
