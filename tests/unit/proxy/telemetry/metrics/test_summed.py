"""The metrics of several workers as those of one process."""

from itertools import pairwise

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.telemetry.metrics.families.latencies import latency_steps
from proxy.telemetry.metrics.summed import KEPT_SECONDS, Family, LowThrottle, SummedFamilies, packed
from proxy.wire.api_keys import PRODUCE
from tests.support.server.listeners import FilledListener


def requests(**by_api: float) -> Family:
    family = CounterMetricFamily("quota_proxy_requests", "Requests.", labels=("api",))
    for api, count in by_api.items():
        family.add_metric((api,), count)
    return packed(family)


def gauge(name: str, value: float) -> Family:
    return packed(GaugeMetricFamily(f"quota_proxy_{name}", "It.", value=value))


def values(sums: SummedFamilies) -> dict[str, float]:
    return {
        sample.labels.get("api", family.name): sample.value
        for family in sums.families()
        for sample in family.samples
    }


def test_counters_add_up_and_stay_when_a_worker_ends() -> None:
    sums = SummedFamilies()
    sums.take(1, [requests(Produce=10, Fetch=1)])
    sums.take(2, [requests(Produce=5)])
    assert values(sums) == {"Produce": 15, "Fetch": 1}
    sums.take(1, [requests(Produce=12, Fetch=1)])
    sums.forget(1)
    assert values(sums) == {"Produce": 17, "Fetch": 1}
    sums.take(3, [requests(Produce=2)])
    sums.take(3, [requests(Produce=3)])
    assert values(sums) == {"Produce": 20, "Fetch": 1}


def test_a_series_that_a_worker_drops_and_begins_again_does_not_go_back() -> None:
    sums = SummedFamilies()
    sums.take(1, [requests(Produce=10)])
    sums.take(1, [requests()])
    assert values(sums) == {"Produce": 10}
    sums.take(1, [requests(Produce=2)])
    assert values(sums) == {"Produce": 12}
    sums.take(1, [requests(Produce=1)])
    assert values(sums) == {"Produce": 13}


def test_a_counter_of_no_worker_is_dropped_in_the_end() -> None:
    now = 0.0
    sums = SummedFamilies(lambda: now)
    sums.take(1, [requests(Produce=1)])
    sums.take(2, [requests(Fetch=1)])
    sums.forget(1)
    now = KEPT_SECONDS + 1
    sums.take(2, [requests(Fetch=1)])
    assert values(sums) == {"Fetch": 1}


class Worker:
    """A worker that counts times of requests."""

    def __init__(self) -> None:
        self._listener = FilledListener()

    def responded(self, *seconds: float) -> list[Family]:
        """Count times of a broker; return the families."""
        for each in seconds:
            self._listener.traffic.broker_times.note(PRODUCE, each)
        return [packed(step) for step in latency_steps([self._listener]) if step is not None]


def histogram(sums: SummedFamilies) -> dict[str, float]:
    """The samples of the broker's times by the ends of their names, and buckets by their bound."""
    return {
        sample.labels.get("le", sample.name.rpartition("_")[2]): sample.value
        for family in sums.families()
        if family.name == "quota_proxy_request_broker_seconds"
        for sample in family.samples
    }


def test_histograms_add_up_and_never_go_back_when_a_worker_is_replaced() -> None:
    sums = SummedFamilies()
    first, second, successor = Worker(), Worker(), Worker()
    sums.take(1, first.responded(0.5, 0.001))
    sums.take(2, second.responded(0.5))
    found = histogram(sums)
    assert (found["0.001"], found["0.512"], found["+Inf"]) == (1, 3, 3)
    assert (found["count"], found["sum"]) == (3, 1.001)
    sums.take(1, first.responded(100.0))
    sums.forget(1)
    shown = [found, histogram(sums)]
    for seconds in (0.001, 0.5):
        sums.take(3, successor.responded(seconds))
        shown.append(histogram(sums))
    assert shown[-1]["count"] == shown[-1]["+Inf"] == 6
    assert (shown[-1]["0.001"], shown[-1]["32.768"]) == (2, 5)
    assert all(after[name] >= before[name] for before, after in pairwise(shown) for name in shown[-1])
    bounds = [float(name) for name in shown[-1] if name not in ("count", "sum")]
    assert bounds == sorted(bounds), "as a scrape has to show them"


def test_gauges_add_up_or_have_the_value_that_counts() -> None:
    sums = SummedFamilies()
    names = ("connections", "instances", "config_last_reload_successful", "replication_throttle_too_low")
    sums.take(1, [gauge(name, value) for name, value in zip(names, (3, 2, 1, 1), strict=True)])
    sums.take(2, [gauge(name, value) for name, value in zip(names, (4, 2, 0, 1), strict=True)])
    assert list(values(sums).values()) == [7, 2, 0, 1]
    sums.forget(2)
    assert list(values(sums).values()) == [3, 2, 1, 1]


def test_the_families_keep_their_names_and_types() -> None:
    sums = SummedFamilies()
    sums.take(1, [requests(Produce=1)])
    (family,) = sums.families()
    assert isinstance(family, Metric)
    assert (family.name, family.type, family.documentation) == (
        "quota_proxy_requests",
        "counter",
        "Requests.",
    )
    assert family.samples[0].name == "quota_proxy_requests_total"


def replication(limit: float, inbound: float, behind: float, too_low: float) -> list[Family]:
    """What a worker shows of the throttle of broker 1 as a leader."""
    shown = {
        "throttle_limit": limit,
        "inbound_rate": inbound,
        "replicas_behind": behind,
        "throttle_too_low": too_low,
    }
    families = []
    for name, value in shown.items():
        family = GaugeMetricFamily(f"quota_proxy_replication_{name}", "It.", labels=("broker", "role"))
        family.add_metric(("1", "leader"), value)
        families.append(packed(family))
    return families


@pytest.mark.parametrize(
    ("one", "other", "too_low", "by_sums"),
    [
        ((60.0, 1.0, 0.0), (60.0, 1.0, 0.0), 1.0, True),
        ((40.0, 1.0, 0.0), (40.0, 1.0, 0.0), 0.0, False),
        ((60.0, 0.0, 0.0), (60.0, 0.0, 0.0), 0.0, False),
        ((110.0, 1.0, 1.0), (60.0, 1.0, 0.0), 1.0, False),
    ],
    ids=["together", "neither", "none behind", "one alone"],
)
def test_a_replication_throttle_is_compared_with_the_growth_of_all_replicas(
    one: tuple[float, float, float], other: tuple[float, float, float], too_low: float, by_sums: bool
) -> None:
    """And its limit is no sum."""
    sums = SummedFamilies()
    for process, shown in enumerate((one, other)):
        sums.take(process, replication(100.0, *shown))
    found = values(sums)
    assert found["quota_proxy_replication_throttle_limit"] == 100.0
    assert found["quota_proxy_replication_inbound_rate"] == one[0] + other[0]
    assert found["quota_proxy_replication_throttle_too_low"] == too_low
    low = [LowThrottle("leader", "1", 100.0, one[0] + other[0], 2.0)]
    assert sums.low_throttles() == (low if by_sums else [])
