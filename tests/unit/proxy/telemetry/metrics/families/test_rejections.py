"""What producers were rejected, and the broker-side quota's rates, in /metrics."""

from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import QuotaEngines
from proxy.quota.identity import ANONYMOUS, Identity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.config_keys import BYTES_IN_THRESHOLD, TOTAL_BYTES_IN_THRESHOLD
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import DEFAULT_RESOURCE, Resources
from proxy.quota.rejection.rejections import RejectedTopic
from proxy.telemetry.metrics.families.rejections import rejection_families
from proxy.telemetry.metrics.series import MAX_SERIES
from proxy.wire.addresses import BrokerAddress
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView

WHO = Identity("u", "c", "127.0.0.1")
VIEW = ClusterView("", {1: BrokerAddress(1, "b", 9)}, {}, {("orders", 0): 1})


def rejecting() -> QuotaEngines:
    """Broker 1's topic is over, and a request of 300 bytes has been rejected."""
    resources = Resources(
        {"orders": {BYTES_IN_THRESHOLD.name: "50"}},
        {DEFAULT_RESOURCE: {TOTAL_BYTES_IN_THRESHOLD.name: "100"}},
    )
    engines = QuotaEngines(load_kinds(), Limits({}, resources=resources))
    engines.see_cluster(VIEW, 0.0)
    request = RequestView(0, 9, 1, "c", 5000)
    request.items = [Item("orders", NO_ID, 0, 1000)]
    engine = engines.engine(1, 0.0)
    engine.admit(request, Identity(ANONYMOUS, "c", "127.0.0.1"), 0.0)
    request.items = [Item("orders", NO_ID, 0, 300)]
    assert engine.reject(request, WHO, 5.0).items == [0]
    return engines


def samples(engines: QuotaEngines) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {
        family.name: [
            (sample.labels, sample.value) for sample in family.samples if not sample.name.endswith("_created")
        ]
        for family in rejection_families(engines, 5.0, lambda name, count: None)
    }


def test_rejections_by_broker_topic_and_reason() -> None:
    got = samples(rejecting())
    labels = {"broker": "1", "topic": "orders", "reason": BYTES_IN_THRESHOLD.name}
    assert got["quota_proxy_rejected_bytes"] == [(labels, 300)]
    assert got["quota_proxy_rejected_requests"] == [(labels, 1)]


def test_rates_of_the_broker_and_its_topics() -> None:
    got = samples(rejecting())
    assert got["quota_proxy_broker_bytes_in_rate"] == [({"broker": "1"}, 200.0)]
    assert got["quota_proxy_topic_bytes_in_rate"] == [({"broker": "1", "topic": "orders"}, 200.0)]
    assert got["quota_proxy_broker_error_bytes"] == [({"broker": "1"}, 0)]


def test_without_a_broker_side_quota_there_are_no_samples() -> None:
    engines = QuotaEngines(load_kinds(), Limits({}))
    engines.see_cluster(VIEW, 0.0)
    assert [got for got in samples(engines).values() if got] == []


def test_topics_that_are_not_shown_are_counted() -> None:
    engines = rejecting()
    topics = engines.engine(1, 5.0).rejections.topics
    for number in range(MAX_SERIES + 3 - len(topics)):
        topics[f"topic-{number}", BYTES_IN_THRESHOLD.name] = RejectedTopic()
    excluded: dict[str, int] = {}
    families = list(rejection_families(engines, 5.0, excluded.__setitem__))
    assert excluded == {"quota_proxy_rejected_bytes": 3, "quota_proxy_rejected_requests": 3}
    assert len(families[0].samples) == MAX_SERIES + 1
