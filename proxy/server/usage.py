"""Builds what reports usage, from the settings."""

from collections.abc import Sequence
from pathlib import Path

from proxy.config.settings import Settings
from proxy.server.listener.gateway import Gateway
from proxy.telemetry.usage.file_sink import FileSink
from proxy.telemetry.usage.kafka_sink import KafkaSink
from proxy.telemetry.usage.reporter import Source, UsageReporter, name_of_this_run
from proxy.telemetry.usage.sink import Sink


def usage_reporter(settings: Settings, gateways: Sequence[Gateway]) -> UsageReporter | None:
    """None where nobody wants usage events. The cluster of the first gateway that may ask has the topic."""
    usage = settings.usage
    if usage is None:
        return None
    proxy = name_of_this_run()
    sinks: list[Sink] = []
    if usage.kafka is not None:
        first = next((gateway for gateway in gateways if gateway.listener.asks), gateways[0])
        bootstrap = first.listener.upstream.addresses
        seconds = settings.limits.connect_seconds
        sinks.append(KafkaSink(bootstrap, usage.kafka.topic, seconds, first.access))
    if usage.files is not None:
        sinks.append(FileSink(Path(usage.files.folder), proxy, usage.files.max_bytes, usage.files.keep))
    sources = [
        Source(gateway.listener.name, gateway.usage, gateway.topic_names)
        for gateway in gateways
        if gateway.usage is not None
    ]
    return UsageReporter(settings.cluster, proxy, usage.interval_seconds, sources, sinks)
