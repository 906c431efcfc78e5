"""AdminSources: the parts of the process that the admin port shows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proxy.config.settings import Admin
from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds.replication.state import ReplicationState
from proxy.quota.measure.bucket_state import BucketState
from proxy.server.admin_port.readiness import Readiness
from proxy.server.certificates import Certificates
from proxy.server.console.console import Console
from proxy.server.limit_sharing import LimitSharing
from proxy.server.listeners import Listeners
from proxy.server.reload import Reload
from proxy.telemetry.loop_lag import LoopLag
from proxy.telemetry.quota_table import QuotaTable
from proxy.telemetry.usage.reporter import UsageReporter

if TYPE_CHECKING:
    from proxy.store.quota_topic import QuotaTopic


@dataclass(frozen=True, kw_only=True)
class AdminSources:
    """Where the admin site reads what it shows."""

    settings: Admin
    engines: QuotaEngines
    listeners: Listeners
    buckets: Callable[[], Iterable[tuple[int, BucketState]]]
    """The active buckets by their brokers' node ids."""
    table: QuotaTable
    """The rows of the buckets and of replication."""
    replication: Callable[[], ReplicationState | None]
    topic: "QuotaTopic | None"
    usage: UsageReporter | None
    sharing: LimitSharing | None
    certificates: Certificates
    loop_lag: LoopLag
    readiness: Readiness
    console: Console
    reload: Reload
