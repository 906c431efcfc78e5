"""The families of requests and their bytes."""

from prometheus_client.core import Metric

from proxy.telemetry.metrics.families.requests import request_families
from proxy.wire.api_keys import PRODUCE
from tests.support.server.listeners import FilledListener


def samples(*listeners: FilledListener) -> dict[tuple[str, ...], float]:
    """By name and label values."""
    families: list[Metric] = list(request_families(listeners))
    return {
        (sample.name.removeprefix("quota_proxy_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_counters_of_a_listener() -> None:
    listener = FilledListener()
    listener.traffic.count_request(PRODUCE)
    listener.traffic.total.bytes_in = 5
    assert samples(listener) == {
        ("requests_total", "clients", "Produce"): 1,
        ("bytes_total", "clients", "in"): 5,
        ("bytes_total", "clients", "out"): 0,
    }


def test_errors_have_kafka_s_names() -> None:
    listener = FilledListener()
    for error_code in (6, 6, -1, 998):
        listener.traffic.count_broker_error(2, PRODUCE, error_code)
    found = samples(listener)
    name, labels = "broker_errors_total", ("clients", "2", "Produce")
    assert found[(name, *labels, "NOT_LEADER_OR_FOLLOWER")] == 2
    assert found[(name, *labels, "UNKNOWN_SERVER_ERROR")] == 1
    assert found[(name, *labels, "998")] == 1


def test_fetches_that_cannot_be_read_come_from_brokers() -> None:
    listener = FilledListener("brokers", between_brokers=True)
    listener.traffic.unread_fetches = 4
    assert samples(listener)["unread_fetches_total", "brokers"] == 4
