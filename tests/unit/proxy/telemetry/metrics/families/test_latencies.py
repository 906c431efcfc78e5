"""The families of times: cumulative buckets by listener and API."""

from proxy.telemetry.metrics.families.latencies import FAMILIES, latency_steps
from proxy.wire.api_keys import FETCH, PRODUCE
from tests.support.server.listeners import FilledListener


def test_each_family_has_its_own_times() -> None:
    listener = FilledListener()
    for number, (_, _, latencies) in enumerate(FAMILIES, 1):
        latencies(listener.traffic).note(PRODUCE, 0.001)
        for _ in range(number):
            latencies(listener.traffic).note(FETCH, 0.5)
    steps = list(latency_steps([listener]))
    assert steps.count(None) == len(FAMILIES), "other work may run between them"
    samples = {
        (sample.name.removeprefix("quota_proxy_"), *sample.labels.values()): sample.value
        for family in steps
        if family is not None
        for sample in family.samples
    }
    for number, (name, _, _) in enumerate(FAMILIES, 1):
        assert samples[f"{name}_count", "clients", "Fetch"] == number
        assert samples[f"{name}_sum", "clients", "Fetch"] == 0.5 * number
        of_fetch = (f"{name}_bucket", "clients", "Fetch")
        buckets = {float(key[3]): value for key, value in samples.items() if key[:3] == of_fetch}
        assert list(buckets) == sorted(buckets)
        assert all(value == (number if bound >= 0.5 else 0) for bound, value in buckets.items())
        assert buckets[float("inf")] == number
