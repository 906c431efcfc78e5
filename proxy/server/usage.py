"""Builds the reporter of usage events from the settings."""

from pathlib import Path

from proxy.config.settings import Settings
from proxy.server.listeners import Listeners
from proxy.telemetry.usage.file_sink import FileSink
from proxy.telemetry.usage.reporter import Source, UsageReporter, name_of_this_run
from proxy.telemetry.usage.sink import Sink


def usage_reporter(settings: Settings, listeners: Listeners) -> UsageReporter | None:
    """Build the reporter and its sinks; None if usage is not configured."""
    usage = settings.usage
    if usage is None:
        return None
    proxy = name_of_this_run()
    sinks: list[Sink] = []
    if usage.kafka is not None:
        # Imported here, because it imports aiokafka, which takes long.
        from proxy.telemetry.usage.kafka_sink import KafkaSink

        sinks.append(KafkaSink(listeners.cluster_access, usage.kafka.topic))
    if usage.files is not None:
        sinks.append(FileSink(Path(usage.files.folder), proxy, usage.files.max_bytes, usage.files.keep))
    sources = [
        Source(gateway.name, gateway.usage, gateway.topic_names)
        for gateway in listeners.all
        if gateway.usage is not None
    ]
    return UsageReporter(settings.cluster, proxy, usage.interval_seconds, sources, sinks)
