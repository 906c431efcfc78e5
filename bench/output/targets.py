"""The project's targets for its cost, compared with a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.output.summary import Summary, reference


@dataclass(frozen=True)
class Target:
    """The compiled proxy's CPU in a scenario, as a multiple of HAProxy's, is at most `limit`."""

    scenario: str
    text: str
    limit: float


TARGETS: Final = (
    Target("produce_small", "CPU per small request, byte quotas of 1,000 tenants", 1.6),
    Target("produce_all", "the same, all kinds of quotas", 1.2),
    Target("produce_joined", "the same with byte quotas, responses in bundles", 1.6),
    Target("produce_24_all", "CPU per Produce of 24 partitions, all kinds of quotas", 1.0),
    Target("fetch_24_all", "CPU per Fetch of 24 partitions, all kinds of quotas", 0.9),
    Target("produce_900kb_all", "CPU per Produce request of 900 KB, all kinds of quotas", 0.5),
    Target("fetch_900kb_all", "CPU per GiB of fetches of 900 KB, all kinds of quotas", 0.4),
    Target("fetch_1mb", "CPU per GiB of large fetches, byte quotas of 1,000 tenants", 1.0),
)


def verdicts(results: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Return a line per target: the measured value and the target, or why it was not measured."""
    return [f"{target.text}: {_verdict(target, results.get(target.scenario, ()))}" for target in TARGETS]


def _verdict(target: Target, summaries: Sequence[Summary]) -> str:
    aim = f"target at most {target.limit:g} times HAProxy's"
    by_name = {summary.peer: summary for summary in summaries}
    measured = by_name.get("proxy")
    if measured is None or measured.cpu_ratio is None or reference(list(by_name)) != "haproxy":
        return f"not measured ({aim}; needs the compiled proxy and HAProxy, and no --baseline)"
    ratio = measured.cpu_ratio
    word = "met" if ratio.best <= target.limit else "missed"
    return f"{ratio.best:.2f} times HAProxy's (median {ratio.median:.2f}); {aim}: {word}"
