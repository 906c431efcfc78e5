"""What /metrics shows of certificates."""

from proxy.telemetry.metrics.families.certificates import certificate_families


def test_metrics() -> None:
    values = {
        (sample.name, sample.labels["file"]): sample.value
        for family in certificate_families({"a.pem": 1.5}, {"a.pem": 1_700_000_000.0})
        for sample in family.samples
    }
    assert values == {
        ("quota_proxy_certificate_days_left", "a.pem"): 1.5,
        ("quota_proxy_certificate_expires_timestamp_seconds", "a.pem"): 1_700_000_000.0,
    }
