"""The families of the process and of its event loop."""

from proxy.telemetry.loop_lag import LoopLag
from proxy.telemetry.metrics.families.process import process_families


def test_the_process_python_and_the_delays_of_the_event_loop() -> None:
    lag = LoopLag()
    for delay in (0.0, 0.002, 60.0):
        lag.note(delay)
    families = {family.name: family for family in process_families(lag)}
    assert {
        "process_resident_memory_bytes",
        "process_open_fds",
        "python_info",
        "python_gc_collections",
    } <= set(families)
    found = {
        sample.labels.get("le", sample.name): sample.value
        for sample in families["quota_proxy_event_loop_lag_seconds"].samples
    }
    assert (found["0.001"], found["0.0025"], found["2.5"], found["+Inf"]) == (1, 2, 2, 3)
    assert found["quota_proxy_event_loop_lag_seconds_sum"] == 60.002
    assert found["quota_proxy_event_loop_lag_seconds_count"] == 3
