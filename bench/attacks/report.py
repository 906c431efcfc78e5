"""The figures of the attacks as Markdown, and the target."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.attacks.neighbour import Latencies
from bench.attacks.turns import TurnTimes

NATIVE: Final = "Kafka"
PROXY: Final = "proxy"
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
    ends: int
    turns: TurnTimes | None = None
    """Those of the proxy's event loop; None if they were not counted."""


def report(figures: Sequence[Measured]) -> list[str]:
    """Format the figures as Markdown."""
    lines = [
        "| attack | on | calm p99 ms | p99 ms | x calm | longest ms | responses | ends |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    missed = []
    for one in figures:
        ratio = one.attacked.p99 / one.calm.p99
        lines.append(
            f"| {one.attack} | {one.target} | {one.calm.p99:.1f} | {one.attacked.p99:.1f} | {ratio:.2f} "
            f"| {one.attacked.longest:.1f} | {one.responses} | {one.ends} |"
        )
        if one.target == PROXY and (ratio > MAX_RATIO or one.attacked.longest > MAX_MS):
            missed.append(one.attack)
    target = f"p99 of at most {MAX_RATIO} times the calm one, and no latency over {MAX_MS:.0f} ms"
    lines += ["", f"- {target}: " + (f"missed by {', '.join(missed)}" if missed else "met")]
    return lines


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
