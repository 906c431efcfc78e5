"""Readiness: what /readyz says of the process."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from proxy.server.certificates import Certificates
from proxy.server.limit_sharing import LimitSharing
from proxy.server.listener.gateway import Gateway
from proxy.server.reload import Reload
from proxy.telemetry.usage.reporter import UsageReporter

if TYPE_CHECKING:
    from proxy.store.quota_topic import QuotaTopic


class Readiness:
    """Whether clients can be served, and what else is wrong."""

    def __init__(
        self,
        *,
        gateways: Sequence[Gateway],
        cluster_ids: Callable[[], Mapping[str, str]],
        topic: "QuotaTopic | None",
        certificates: Certificates,
        reload: Reload,
        usage: UsageReporter | None,
        sharing: LimitSharing | None = None,
    ) -> None:
        """`cluster_ids` returns the id of each listener's cluster, by the listener's name, empty if it is not
        known. `topic` stores quotas, if one does; `usage` is None if usage is not reported, `sharing` if
        limits are not shared.
        """
        self.draining = False
        self._gateways: Final = gateways
        self._cluster_ids: Final = cluster_ids
        self._topic: Final = topic
        self._certificates: Final = certificates
        self._reload: Final = reload
        self._usage: Final = usage
        self._sharing: Final = sharing

    def problems(self) -> list[str]:
        """Why clients cannot be served now; empty if they can."""
        problems = ["shutting down"] if self.draining else []
        if self._topic is not None and not self._topic.loaded.is_set():
            # Listeners do not start before the quotas are loaded: their own problems only follow from this.
            return [*problems, f"quotas: {self._topic.problem}"]
        if self._sharing is not None and self._sharing.problem:
            return [*problems, f"sharing: {self._sharing.problem}"]
        return problems + [problem for gateway in self._gateways for problem in gateway.problems()]

    def warnings(self) -> list[str]:
        """The problems that do not keep clients from being served."""
        warnings = []
        if self._topic is not None and self._topic.loaded.is_set() and self._topic.problem:
            warnings.append(f"quotas stay as they are, and changes are rejected: {self._topic.problem}")
        if self._topic is not None and self._topic.write_problem:
            warnings.append(f"quotas: changes are rejected: {self._topic.write_problem}")
        if self._topic is not None and self._topic.skipped.warning:
            warnings.append(f"quotas: {self._topic.skipped.warning}")
        if self._sharing is not None:
            warnings += [f"sharing: {warning}" for warning in self._sharing.warnings()]
        warnings += _different_clusters(self._cluster_ids())
        warnings += self._certificates.warnings()
        warnings += [warning for gateway in self._gateways for warning in gateway.warnings()]
        if self._reload.problem:
            warnings.append(f"the previous configuration stays in force: {self._reload.problem}")
        if self._usage is not None:
            warnings += self._usage.problems
        return warnings


def _different_clusters(ids: Mapping[str, str]) -> list[str]:
    """A warning if listeners serve different clusters: buckets and metrics have the broker's node id, and no
    cluster.
    """
    if len(set(filter(None, ids.values()))) < 2:
        return []
    listed = ", ".join(f"{listener}: {cluster_id}" for listener, cluster_id in ids.items() if cluster_id)
    return [
        f"the listeners serve different clusters ({listed}), whose quotas and metrics are mixed; run a proxy "
        "for each cluster"
    ]
