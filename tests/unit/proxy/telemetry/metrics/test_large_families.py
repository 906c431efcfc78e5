"""Families with any number of series."""

from prometheus_client.core import Metric

from proxy.quota.usage import REST
from proxy.telemetry.metrics.large_families import LargeFamilies
from proxy.telemetry.metrics.series import MAX_SERIES, Series


def shown(large: LargeFamilies, name: str, series: Series, kept: int = 1) -> Metric:
    [family] = [step for step in large.series(name, "Text.", ("user", "client_id"), series, kept) if step]
    return family


def test_rest_does_not_decrease_when_idle_buckets_are_dropped() -> None:
    large = LargeFamilies()
    series: Series = {(f"user-{number}", "app"): 5.0 for number in range(MAX_SERIES + 3)}
    rests = []
    for _ in range(2):
        family = shown(large, "throttle_seconds", series, kept=0)
        rests += [sample.value for sample in family.samples if sample.labels["client_id"] == REST]
        for key in list(series)[-2:]:
            del series[key]
    assert rests == [15.0, 15.0]


def test_each_scrape_notes_what_it_does_not_show() -> None:
    large = LargeFamilies()
    shown(large, "first", {(f"user-{number}", "app"): 5.0 for number in range(MAX_SERIES + 3)})
    shown(large, "second", {("alice", "app"): 5.0})
    large.note_excluded("quota_proxy_third", 7)
    found = {sample.labels["family"]: sample.value for sample in large.excluded().samples}
    assert found == {"quota_proxy_first": 3, "quota_proxy_third": 7}
    large.begin()
    assert large.excluded().samples == []
