"""The figures of the attacks as Markdown, and the target."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.attacks.catalogue import title
from bench.attacks.neighbour import Latencies
from bench.attacks.turns import TurnTimes

NATIVE: Final = "Kafka"
PROXY: Final = "proxy"
NOT_MEASURED: Final = "-"
ROUND_FROM_MS: Final = 10.0
"""Latencies from here on are shown without decimals."""
MAX_RATIO: Final = 1.5
MAX_MS: Final = 50.0
"""The target: p99 of at most MAX_RATIO times the calm one, and never more than MAX_MS."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One attack on one target."""

    attack: str
    target: str
    calm: Latencies
    attacked: Latencies
    responses: int
    """Responses that the attacker got during the attack."""
    ends: int
    """Its connections that the other side ended."""
    throttled_seconds: float = 0.0
    """The sum of throttle_time_ms in the attacker's responses."""
    at_broker: tuple[Latencies, Latencies] | None = None
    """The latencies, calm and attacked, of a neighbour at the broker, during the attack through the proxy."""
    turns: TurnTimes | None = None
    """Those of the proxy's event loop; None if they were not counted."""


def report(figures: Sequence[Measured]) -> list[str]:
    """Format the figures as Markdown: the target, a table for docs/attacks.md, and one of all figures."""
    missed = [one.attack for one in figures if one.target == PROXY and _missed(one.calm, one.attacked)]
    at_broker = [one.attack for one in figures if one.at_broker is not None and _missed(*one.at_broker)]
    target = f"p99 of at most {MAX_RATIO} times the calm one, and no latency over {MAX_MS:.0f} ms"
    return [
        *_all_figures(figures),
        "",
        f"- {target}: " + (f"missed by {', '.join(missed)}" if missed else "met"),
        "- a neighbour at the broker itself, meanwhile: "
        + (f"missed by {', '.join(at_broker)}" if at_broker else "met"),
        "",
        *_page_table(figures),
    ]


def _missed(calm: Latencies, attacked: Latencies) -> bool:
    return attacked.p99 / calm.p99 > MAX_RATIO or attacked.longest > MAX_MS


def _all_figures(figures: Sequence[Measured]) -> list[str]:
    lines = [
        "| attack | on | calm p99 ms | p99 ms | x calm | longest ms | responses | ends | throttled s |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in figures:
        ratio = one.attacked.p99 / one.calm.p99
        lines.append(
            f"| {one.attack} | {one.target} | {one.calm.p99:.1f} | {one.attacked.p99:.1f} | {ratio:.2f} "
            f"| {one.attacked.longest:.1f} | {one.responses} | {one.ends} | {one.throttled_seconds:.1f} |"
        )
    return lines


def _page_table(figures: Sequence[Measured]) -> list[str]:
    """Return a line for each attack: the p99 and the longest latency, and the responses to the attacker."""
    native = {one.attack: one for one in figures if one.target == NATIVE}
    lines = [
        "| attack | through the proxy: p99, ms | longest, ms | at the broker meanwhile: p99 | longest "
        "| Kafka alone: p99 | longest | responses to the attacker | Kafka alone |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in figures:
        if one.target == PROXY:
            alone = native.get(one.attack)
            cells = [
                title(one.attack),
                *_cells(one.attacked),
                *_cells(None if one.at_broker is None else one.at_broker[1]),
                *_cells(None if alone is None else alone.attacked),
                f"{one.responses:,}",
                NOT_MEASURED if alone is None else f"{alone.responses:,}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cells(found: Latencies | None) -> list[str]:
    if found is None:
        return [NOT_MEASURED] * 2
    return [
        f"{value:.1f}" if value < ROUND_FROM_MS else f"{value:.0f}" for value in (found.p99, found.longest)
    ]


def report_turns(figures: Sequence[Measured]) -> list[str]:
    """Format the turns of the event loop as Markdown."""
    lines = [
        "| attack | turns | half of the CPU in turns up to, ms | p99 ms | tenth longest ms | longest ms |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in figures:
        found = one.turns
        if found is not None:
            lines.append(
                f"| {one.attack} | {found.count} | {found.busy_ms:.2f} | {found.p99_ms:.2f} "
                f"| {found.tenth_ms:.2f} | {found.longest_ms:.2f} |"
            )
    return lines
