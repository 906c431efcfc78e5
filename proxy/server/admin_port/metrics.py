"""The metrics of the process.

It is imported late: prometheus_client takes long to import. A worker imports it without the admin site, which
only its supervisor has.
"""

import asyncio
from collections.abc import Iterator
from itertools import chain

from prometheus_client.core import Metric

from proxy.server.admin_port.sources import AdminSources
from proxy.telemetry.metrics.families.certificates import certificate_families
from proxy.telemetry.metrics.families.connections import admission_families
from proxy.telemetry.metrics.families.rejections import rejection_families
from proxy.telemetry.metrics.families.replication import replication_families
from proxy.telemetry.metrics.families.sharing import sharing_families
from proxy.telemetry.metrics.metrics import ProxyCollector
from proxy.telemetry.metrics.series import NoteExcluded


def proxy_collector(sources: AdminSources) -> ProxyCollector:
    """The metrics of these sources."""
    return ProxyCollector(
        listeners=sources.listeners.all,
        buckets=sources.buckets,
        store=sources.topic,
        file_rejected=lambda: bool(sources.reload.problem),
        sinks=() if sources.usage is None else sources.usage.sinks,
        more=lambda note_excluded: _more_families(sources, note_excluded),
    )


def _more_families(sources: AdminSources, note_excluded: NoteExcluded) -> Iterator[Metric | None]:
    now = asyncio.get_running_loop().time()
    replication = sources.listeners.replication
    lags = chain.from_iterable(gateway.connections.follower_lags() for gateway in replication)
    sharing = sources.sharing
    return chain(
        admission_families(sources.listeners.admitted, sources.listeners.max_connections),
        certificate_families(sources.certificates.days_left(), sources.certificates.ends()),
        rejection_families(sources.engines, now, note_excluded),
        replication_families(sources.replication(), lags, now),
        ()
        if sharing is None
        else sharing_families(sharing.instances, sharing.lag_seconds, sharing.degraded, sharing.failures),
    )
