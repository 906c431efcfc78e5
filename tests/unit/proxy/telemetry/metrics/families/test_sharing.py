"""What /metrics shows where processes share limits."""

from proxy.telemetry.metrics.families.sharing import sharing_families


def test_metrics() -> None:
    values = {
        sample.name: sample.value
        for family in sharing_families(3, 0.25, degraded=True, failures=2)
        for sample in family.samples
    }
    assert values == {
        "quota_proxy_instances": 3,
        "quota_proxy_sharing_lag_seconds": 0.25,
        "quota_proxy_sharing_degraded": 1.0,
        "quota_proxy_sharing_failures_total": 2,
    }
