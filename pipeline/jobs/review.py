"""The review of recommended quotas: a text for a pull request, with the changes in the form of `quota-proxy
quotas diff`, their effect, and who gets no quota. Lines that are no change begin with `#`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pipeline.cluster.quotas import QuotaChange, show_name, show_tenant, summary
from pipeline.report.units import duration, instant, size
from pipeline.transforms.recommend import Skipped
from pipeline.window import Window

_SHOWN: Final = 20
"""Tenants of a list; the tables have all."""


class Effect(NamedTuple):
    """A row of `schema.REPLAY`. The values after are None if the quota was not replayed."""

    cluster: str
    user: str
    client_id: str
    quota: str | None
    before_throttle_ms: int
    after_throttle_ms: int | None
    before_rejected_bytes: int
    after_rejected_bytes: int | None
    after_late_ms: int | None

    @property
    def more_ms(self) -> int:
        """How much longer the tenant would have been throttled."""
        return (self.after_throttle_ms or 0) - self.before_throttle_ms


@dataclass(frozen=True, slots=True)
class Review:
    """What the review shows. `compared`: the file or the server with the current quotas; empty if none."""

    compared: str
    changes: Sequence[QuotaChange]
    effects: Sequence[Effect]
    period: Window
    skipped: Sequence[Skipped]


def review_text(review: Review) -> str:
    """Write the review."""
    begin, end = (_time(ms) for ms in (review.period.start_ms, review.period.end_ms))
    lines = [
        f"# Recommended quotas, compared with {review.compared or 'no quotas'}: {summary(review.changes)}",
        *map(str, review.changes),
        "#",
        f"# With them, from {begin} to {end}, UTC (replay/ has all):",
        *_effects(review.effects),
        "#",
        f"# No quota for {len(review.skipped):,} rates (skipped/ has all)",
        *[
            f"#   {show_tenant(each.user, each.client_id)}: {each.quota}: {each.reason}"
            for each in review.skipped[:_SHOWN]
        ],
        *_more(len(review.skipped)),
    ]
    return "".join(f"{line}\n" for line in lines)


def _effects(effects: Sequence[Effect]) -> list[str]:
    """Return the lines about what the quotas would have done to tenants."""
    known = [effect for effect in effects if effect.after_throttle_ms is not None]
    others = sorted({effect.quota or "unknown" for effect in effects if effect.after_throttle_ms is None})
    unknown = [f"#   not replayed: {', '.join(map(show_name, others))}"] if others else []
    if not known:
        return unknown or ["#   no quota throttles or rejects anything"]
    longer = sum(effect.more_ms > 0 for effect in known)
    shorter = sum(effect.more_ms < 0 for effect in known)
    worst = sorted(known, key=lambda effect: (-abs(effect.more_ms), effect))
    several = len({effect.cluster for effect in effects}) > 1
    return [
        f"#   throttled longer: {longer:,}, shorter: {shorter:,}, as long: {len(known) - longer - shorter:,}",
        *[f"#   {_effect(effect, several=several)}" for effect in worst[:_SHOWN]],
        *_more(len(known)),
        *unknown,
    ]


def _effect(effect: Effect, *, several: bool) -> str:
    cluster = f"{show_name(effect.cluster)}: " if several else ""
    parts = [f"throttled {duration(effect.before_throttle_ms)} -> {duration(effect.after_throttle_ms or 0)}"]
    if effect.before_rejected_bytes or effect.after_rejected_bytes:
        after = size(effect.after_rejected_bytes or 0)
        parts.append(f"rejected {size(effect.before_rejected_bytes)} -> {after}")
    if effect.after_late_ms:
        parts.append(f"late by up to {duration(effect.after_late_ms)}")
    quota = show_name(effect.quota or "unknown")
    return f"{cluster}{show_tenant(effect.user, effect.client_id)}: {quota}: {', '.join(parts)}"


def _more(count: int) -> list[str]:
    return [f"#   and {count - _SHOWN:,} more"] if count > _SHOWN else []


def _time(ms: int | None) -> str:
    return "?" if ms is None else instant(datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None))
