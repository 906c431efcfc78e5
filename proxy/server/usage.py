"""Builds what reports usage, from the settings."""

from collections.abc import Iterable
from pathlib import Path

from proxy.server.gateway import Gateway
from proxy.settings import Settings
from proxy.telemetry.file_sink import FileSink
from proxy.telemetry.kafka_sink import KafkaSink
from proxy.telemetry.sink import Sink
from proxy.telemetry.usage import Source, UsageReporter, name_of_this_run


def usage_reporter(settings: Settings, gateways: Iterable[Gateway]) -> UsageReporter | None:
    """None where nobody wants usage events."""
    usage = settings.usage
    if usage is None:
        return None
    proxy = name_of_this_run()
    sinks: list[Sink] = []
    if usage.kafka is not None:
        bootstrap = settings.listeners[0].upstream.addresses
        sinks.append(KafkaSink(bootstrap, usage.kafka.topic, settings.limits.connect_seconds))
    if usage.files is not None:
        sinks.append(FileSink(Path(usage.files.folder), proxy, usage.files.max_bytes, usage.files.keep))
    sources = [
        Source(gateway.listener.name, gateway.usage, gateway.cluster)
        for gateway in gateways
        if gateway.usage is not None
    ]
    return UsageReporter(settings.cluster, proxy, usage.interval_seconds, sources, sinks)
