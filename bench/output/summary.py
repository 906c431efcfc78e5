"""Turns samples into figures: best and median of the rounds, and ratios to the run's reference peer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.peers.quota_proxy import BASELINE
from bench.rounds import Sample
from bench.scenarios import Scenario

REFERENCES: Final = (BASELINE, "haproxy", "relay")
"""The reference peers for ratios: the first that ran is used."""


@dataclass(frozen=True)
class Figure:
    """One measure over the rounds."""

    best: float
    median: float

    def ratio(self, other: "Figure") -> "Figure":
        """The ratio of best to best, and of median to median."""
        return Figure(self.best / other.best, self.median / other.median)


@dataclass(frozen=True)
class Summary:
    """One peer in one scenario. CPU figures are None without a measured process."""

    peer: str
    requests_per_s: Figure
    mib_per_s: Figure
    p50_ms: Figure
    p99_ms: Figure
    peak_rss_mib: float | None = None
    cpu_ms_per_1k_req: Figure | None = None
    cpu_s_per_gib: Figure | None = None
    cpu_ratio: Figure | None = None
    added_p99_ms: Figure | None = None


def reference(peers: Sequence[str]) -> str | None:
    """The peer that the others are compared with."""
    return next((name for name in REFERENCES if name in peers), None)


def summarize(scenario: Scenario, samples: Mapping[str, Sequence[Sample]]) -> list[Summary]:
    """Compute every peer's figures. Added latency is relative to the direct run of the same round, in the
    open loop.
    """
    base = reference(list(samples))
    base_cpu = _lowest(samples[base], "cpu_ms_per_1k_req") if base else None
    return [_summary(name, own, samples, base_cpu, scenario.rate > 0) for name, own in samples.items()]


def _summary(
    name: str,
    own: Sequence[Sample],
    samples: Mapping[str, Sequence[Sample]],
    base_cpu: Figure | None,
    open_loop: bool,
) -> Summary:
    """Return the figures of one peer; those of CPU and memory are None for `direct`."""
    throughput, volume = _highest(own, "requests_per_s"), _highest(own, "mib_per_s")
    p50, p99 = _lowest(own, "p50_ms"), _lowest(own, "p99_ms")
    if name == "direct":
        return Summary(name, throughput, volume, p50, p99)
    cpu = _lowest(own, "cpu_ms_per_1k_req")
    return Summary(
        name,
        throughput,
        volume,
        p50,
        p99,
        peak_rss_mib=max(sample["peak_rss_mib"] for sample in own),
        cpu_ms_per_1k_req=cpu,
        cpu_s_per_gib=_lowest(own, "cpu_s_per_gib"),
        cpu_ratio=cpu.ratio(base_cpu) if base_cpu else None,
        added_p99_ms=_added(own, samples["direct"]) if open_loop and "direct" in samples else None,
    )


def _added(own: Sequence[Sample], direct: Sequence[Sample]) -> Figure:
    added = [mine["p99_ms"] - bare["p99_ms"] for mine, bare in zip(own, direct, strict=True)]
    return Figure(min(added), median(added))


def _lowest(samples: Sequence[Sample], measure: str) -> Figure:
    values = [sample[measure] for sample in samples]
    return Figure(min(values), median(values))


def _highest(samples: Sequence[Sample], measure: str) -> Figure:
    values = [sample[measure] for sample in samples]
    return Figure(max(values), median(values))
