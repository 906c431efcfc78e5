"""SummedFamilies: the metrics of several workers as those of one process.

Counters are sums that never go back: what a worker has counted stays when it ends, or drops a series.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

import msgspec
from prometheus_client.core import Metric

from proxy.telemetry.metrics.series import PREFIX

KEPT_SECONDS: Final = 900.0
"""For how long a counter of no worker is still shown. Prometheus takes a series that was away for five
minutes for a new one."""
_COUNTED: Final = ("counter", "histogram")
"""Types whose samples only grow."""
_LARGEST: Final = (
    "build_info",
    "instances",
    "sharing_lag_seconds",
    "sharing_degraded",
    "quota_limit",
    "quota_store_lag",
    "quota_store_broken_records",
    "brokers_without_port",
    "replication_throttle_limit",
    "replication_throttle_too_low",
)
_LEAST: Final = (
    "config_last_reload_successful",
    "certificate_days_left",
    "certificate_expires_timestamp_seconds",
    "quota_store_reachable",
)
_COMBINE: Final[dict[str, Callable[[float, float], float]]] = {
    **{PREFIX + name: max for name in _LARGEST},
    **{PREFIX + name: min for name in _LEAST},
    "python_info": max,
    "process_start_time_seconds": min,
    "process_max_fds": min,
}
"""How the gauges combine that do not add up."""
_TOO_LOW: Final = PREFIX + "replication_throttle_too_low"
_LIMIT: Final = PREFIX + "replication_throttle_limit"
_INBOUND: Final = PREFIX + "replication_inbound_rate"
_BEHIND: Final = PREFIX + "replication_replicas_behind"
SampleKey = tuple[str, tuple[tuple[str, str], ...]]
"""The sample's name, and its labels."""


class LowThrottle(NamedTuple):
    """A replication throttle that is too low for the followers of all workers together."""

    role: str
    broker: str
    limit: float
    inbound: float
    behind: float


class Family(msgspec.Struct, array_like=True, frozen=True):
    """A metric family of one worker, as it is sent to the supervisor."""

    name: str
    documentation: str
    type: str
    samples: list[tuple[str, dict[str, str], float]]


def packed(metric: Metric) -> Family:
    """The family as a worker sends it."""
    samples = [(sample.name, dict(sample.labels), float(sample.value)) for sample in metric.samples]
    return Family(metric.name, metric.documentation, metric.type, samples)


Gauges = dict[str, tuple[Family, dict[SampleKey, float]]]
"""By the name of a family: the family as one worker sent it, and the values of all workers, combined."""


class _Total:
    """The sum of a counter over all workers, and when a worker last sent it."""

    __slots__ = ("seen_at", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.seen_at = 0.0


class SummedFamilies:
    """The sums over all workers, up to what each has sent last."""

    def __init__(self, time: Callable[[], float] = time.monotonic) -> None:
        self._time: Final = time
        self._latest: Final[dict[int, list[Family]]] = {}
        """The families that each process has sent last."""
        self._counted: Final[dict[int, dict[SampleKey, float]]] = {}
        """The counters of each process, as it sent them last."""
        self._totals: Final[dict[str, dict[SampleKey, _Total]]] = {}
        """The counters of each family."""
        self._counters: Final[dict[str, Family]] = {}
        """The families of counters and histograms, as a worker sent them last."""

    def take(self, process: int, families: list[Family]) -> None:
        """Replace the families of a process, and add to the totals what its counters have grown."""
        now = self._time()
        before = self._counted.get(process, {})
        counted: dict[SampleKey, float] = {}
        for family in families:
            if family.type not in _COUNTED:
                continue
            self._counters[family.name] = family
            totals = self._totals.setdefault(family.name, {})
            for name, labels, value in family.samples:
                key = name, tuple(labels.items())
                counted[key] = value
                total = totals.setdefault(key, _Total())
                known = before.get(key, 0.0)
                # A series that the worker dropped begins again at 0.
                total.value += value - known if value >= known else value
                total.seen_at = now
        self._counted[process] = counted
        self._latest[process] = families

    def forget(self, process: int) -> None:
        """Forget a process that has ended; what it counted stays."""
        self._counted.pop(process, None)
        self._latest.pop(process, None)

    def families(self) -> Iterator[Metric]:
        """Yield the families of all workers together."""
        self._drop_old()
        for name, totals in self._totals.items():
            family = self._counters[name]
            metric = Metric(name, family.documentation, family.type)
            for (sample, labels), total in totals.items():
                metric.add_sample(sample, dict(labels), total.value)
            yield metric
        found = self._gauges()
        for throttle in list(_low_throttles(found)):
            found[_TOO_LOW][1][_TOO_LOW, _of(throttle)] = 1.0
        for family, values in found.values():
            metric = Metric(family.name, family.documentation, family.type)
            for (sample, names), value in values.items():
                metric.add_sample(sample, dict(names), value)
            yield metric

    def low_throttles(self) -> list[LowThrottle]:
        """The replication throttles that are too low only by the sums: no worker finds them alone."""
        return list(_low_throttles(self._gauges()))

    def _gauges(self) -> Gauges:
        """The gauges of all workers, combined."""
        families: Iterable[Family] = chain.from_iterable(self._latest.values())
        found: Gauges = {}
        for family in families:
            if family.type in _COUNTED:
                continue
            _, values = found.setdefault(family.name, (family, {}))
            combine = _COMBINE.get(family.name, _add)
            for name, labels, value in family.samples:
                key = name, tuple(labels.items())
                values[key] = combine(values[key], value) if key in values else value
        return found

    def _drop_old(self) -> None:
        oldest = self._time() - KEPT_SECONDS
        shown = {key for counted in self._counted.values() for key in counted}
        for totals in self._totals.values():
            for key in [key for key, total in totals.items() if total.seen_at < oldest and key not in shown]:
                del totals[key]


def _add(one: float, other: float) -> float:
    return one + other


def _low_throttles(found: Gauges) -> Iterator[LowThrottle]:
    """The throttles that no worker calls too low: each compares the limit with its own followers only."""
    if _TOO_LOW not in found or _LIMIT not in found:
        return
    for (_, labels), said in found[_TOO_LOW][1].items():
        limit = found[_LIMIT][1].get((_LIMIT, labels))
        if said == 0.0 and limit is not None:
            inbound = found[_INBOUND][1].get((_INBOUND, labels), 0.0)
            behind = found[_BEHIND][1].get((_BEHIND, labels), 0.0)
            if behind > 0.0 and limit <= inbound:
                names = dict(labels)
                yield LowThrottle(names["role"], names["broker"], limit, inbound, behind)


def _of(throttle: LowThrottle) -> tuple[tuple[str, str], ...]:
    return (("broker", throttle.broker), ("role", throttle.role))
