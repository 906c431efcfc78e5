"""The families of connections: open, paused, closed, at most, and to brokers."""

from prometheus_client.core import Metric

from proxy.telemetry.metrics.families.connections import AT_A_TIME, admission_families, connection_steps
from tests.support.server.listeners import FilledListener


def samples(families: list[Metric]) -> dict[tuple[str, ...], float]:
    """By name and label values."""
    return {
        (sample.name.removeprefix("quota_proxy_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_connections_of_a_listener() -> None:
    listener = FilledListener()
    listener.traffic.count_failed_login("PLAIN", "10.0.0.1")
    found = samples([step for step in connection_steps([listener]) if step is not None])
    assert found == {
        ("connections", "clients"): 3,
        ("connections_paused", "clients", "throttled"): 2,
        ("connections_paused", "clients", "connecting"): 0,
        ("connections_closed_total", "clients", "idle"): 2,
        ("broker_connects_total", "clients", "1", "failed"): 4,
        ("authentication_failures_total", "clients", "PLAIN", "10.0.0.1"): 1,
        ("brokers_without_port", "clients"): 1,
        ("broker_addresses_rejected_total", "clients"): 6,
    }


def test_other_work_runs_between_many_connections() -> None:
    listener = FilledListener()
    listener.paused = ["throttled"] * (3 * AT_A_TIME)
    steps = list(connection_steps([listener]))
    assert steps.count(None) == 3
    found = samples([step for step in steps if step is not None])
    assert found["connections_paused", "clients", "throttled"] == 3 * AT_A_TIME


def test_how_many_there_may_be() -> None:
    found = samples(list(admission_families(17, 20_000)))
    assert found == {("admitted_connections",): 17, ("max_connections",): 20_000}
