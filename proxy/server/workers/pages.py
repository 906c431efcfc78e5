"""What a worker replies to its supervisor: its metrics, and its rows of /api/quotas.

Only `link` imports this file, and late: prometheus_client takes long to import. A worker has no admin port
and does without aiohttp, which takes 12 MiB.
"""

import asyncio
from itertools import chain

import msgspec

from proxy.server.admin_port.metrics import proxy_collector
from proxy.server.admin_port.sources import AdminSources
from proxy.server.workers.channel import METRICS
from proxy.telemetry.metrics.families.process import process_families
from proxy.telemetry.metrics.summed import packed
from proxy.telemetry.slices import Slices


async def page(sources: AdminSources, what: str) -> bytes:
    """The reply as JSON: the families of metrics, or the rows of quotas."""
    return await _metrics(sources) if what == METRICS else await _quotas(sources)


async def _metrics(sources: AdminSources) -> bytes:
    parts = []
    slices = Slices()
    process = await asyncio.to_thread(lambda: list(process_families(sources.loop_lag)))
    for step in chain(process, proxy_collector(sources).steps()):
        if step is not None:
            parts.append(msgspec.json.encode(packed(step)))
        await slices.give_way()
    return b"[" + b",".join(parts) + b"]"


async def _quotas(sources: AdminSources) -> bytes:
    return b"[" + b",".join([msgspec.json.encode(row) async for row in sources.table.rows()]) + b"]"
