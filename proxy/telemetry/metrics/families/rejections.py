"""The families of rejected Produce requests, and of the broker-side quota's rates."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds import broker_bytes_in
from proxy.quota.kinds.broker_bytes_in import TOTAL, BrokerBytesIn
from proxy.telemetry.metrics.series import MAX_SERIES, PREFIX, NoteExcluded, Series, add, bounded

REJECTED: Final = ("broker", "topic", "reason")
TOPIC: Final = ("broker", "topic")


def rejection_families(engines: QuotaEngines, now: float, note_excluded: NoteExcluded) -> Iterator[Metric]:
    """Yield the families; `now` is on the clock of the quotas."""
    requests: Series = {}
    sizes: Series = {}
    for node_id, engine in engines.engines().items():
        for (topic, reason), rejected in engine.rejections.topics.items():
            labels = (str(node_id), topic, reason)
            add(requests, labels, rejected.requests)
            add(sizes, labels, rejected.bytes)
    text = "Bytes of record batches that the proxy rejected."
    yield _counter("rejected_bytes", text, sizes, note_excluded)
    text = "Produce requests that the proxy rejected, in part or as a whole."
    yield _counter("rejected_requests", text, requests, note_excluded)
    yield from _rates(engines, now, note_excluded)


def _counter(name: str, text: str, series: Series, note_excluded: NoteExcluded) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=REJECTED)
    _note(name, series, note_excluded)
    for labels, value in bounded(series).items():
        family.add_metric(labels, value)
    return family


def _note(name: str, series: Series, note_excluded: NoteExcluded) -> None:
    if len(series) > MAX_SERIES:
        note_excluded(PREFIX + name, len(series) - MAX_SERIES)


def _rates(engines: QuotaEngines, now: float, note_excluded: NoteExcluded) -> Iterator[Metric]:
    """One-minute averages; without samples if there is no such quota."""
    text = "Bytes per second produced to the broker, as Kafka's one-minute moving average."
    into_broker = GaugeMetricFamily(PREFIX + "broker_bytes_in_rate", text, labels=("broker",))
    text = "Bytes per second produced to the topic on the broker, as Kafka's one-minute moving average."
    into_topic = GaugeMetricFamily(PREFIX + "topic_bytes_in_rate", text, labels=TOPIC)
    text = "Bytes of record batches that the broker itself rejected."
    errors = CounterMetricFamily(PREFIX + "broker_error_bytes", text, labels=("broker",))
    rates: Series = {}
    for quota in engines.of_kind(broker_bytes_in.KIND):
        assert isinstance(quota, BrokerBytesIn)
        if not quota.active:
            continue
        broker = str(quota.node_id)
        errors.add_metric((broker,), quota.error_bytes)
        for bucket in quota.live():
            if bucket.quota == TOTAL:
                into_broker.add_metric((broker,), bucket.measure(now))
            else:
                rates[broker, bucket.topic] = bucket.measure(now)
    _note("topic_bytes_in_rate", rates, note_excluded)
    for labels, value in bounded(rates).items():
        into_topic.add_metric(labels, value)
    yield from (into_broker, into_topic, errors)
