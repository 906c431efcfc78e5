"""The metric families of requests and their bytes, by listener."""

from collections.abc import Iterable, Iterator

from kio.schema.errors import ErrorCode
from prometheus_client.core import CounterMetricFamily, Metric

from proxy.telemetry.metrics.listeners import MeteredListener
from proxy.telemetry.metrics.series import PREFIX
from proxy.wire.api_keys import api_name


def request_families(listeners: Iterable[MeteredListener]) -> Iterator[Metric]:
    """Yield the families."""
    requests = CounterMetricFamily(PREFIX + "requests", "Requests, by API.", labels=("listener", "api"))
    sizes = CounterMetricFamily(
        PREFIX + "bytes",
        "Bytes received from clients (in) and sent to clients (out).",
        labels=("listener", "direction"),
    )
    unread = CounterMetricFamily(
        PREFIX + "unread_fetches",
        "Fetches between brokers in versions that the proxy cannot parse; no quota applies to them.",
        labels=("listener",),
    )
    errors = CounterMetricFamily(
        PREFIX + "broker_errors",
        "Error codes in brokers' responses, of partitions or of whole responses.",
        labels=("listener", "broker", "api", "error"),
    )
    for listener in listeners:
        name = listener.name
        for (node_id, api_key, error_code), count in listener.traffic.broker_errors.items():
            errors.add_metric((name, str(node_id), api_name(api_key), error_name(error_code)), count)
        for api_key, count in enumerate(listener.traffic.requests):
            if count:
                requests.add_metric((name, api_name(api_key)), count)
        sizes.add_metric((name, "in"), float(listener.traffic.total.bytes_in))
        sizes.add_metric((name, "out"), float(listener.traffic.total.bytes_out))
        if listener.between_brokers:
            unread.add_metric((name,), listener.traffic.unread_fetches)
    yield from (requests, sizes, errors, unread)


def error_name(error_code: int) -> str:
    """Kafka's name of an error code; the number of an unknown one."""
    try:
        return ErrorCode(error_code).name.upper()
    except ValueError:
        return str(error_code)
