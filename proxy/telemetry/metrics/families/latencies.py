"""The metric families of the times of requests, by API."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric

from proxy.relay.counters.latencies import Latencies
from proxy.relay.counters.traffic import Traffic
from proxy.telemetry.metrics.listeners import MeteredListener
from proxy.telemetry.metrics.series import PREFIX
from proxy.wire.api_keys import api_name

FAMILIES: Final[tuple[tuple[str, str, Callable[[Traffic], Latencies]], ...]] = (
    (
        "request_proxy_seconds",
        "Time that the proxy took for a request and its response, of a sample of the requests.",
        lambda traffic: traffic.proxy_times,
    ),
    (
        "request_broker_seconds",
        "Time from when a broker could begin with a request to its response.",
        lambda traffic: traffic.broker_times,
    ),
    (
        "request_throttle_seconds",
        "Time for which quotas made a client wait because of a request, of the throttled requests.",
        lambda traffic: traffic.throttle_times,
    ),
)


def latency_steps(listeners: Iterable[MeteredListener]) -> Iterator[Metric | None]:
    """Yield the families, and a None wherever the event loop may run other work."""
    for name, text, latencies in FAMILIES:
        family = HistogramMetricFamily(PREFIX + name, text, labels=("listener", "api"))
        for listener in listeners:
            for api_key, histogram in latencies(listener.traffic).used():
                names = [*map(str, histogram.bounds), "+Inf"]
                counts = map(float, histogram.cumulative)
                buckets = list(zip(names, counts, strict=True))
                family.add_metric((listener.name, api_name(api_key)), buckets, histogram.total_seconds)
            yield None
        yield family
