"""The demo's report: each tenant's rate against its quota."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.table import Table

from proxy.demo.tenants import Flow

MIB: Final = 1 << 20
TOLERANCE: Final = 0.10
"""The allowed deviation from a quota, as a fraction of it."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one flow."""

    flow: Flow
    rate: float
    """Bytes of records per second."""
    throttle_seconds: float
    """How long the proxy throttled it, over the whole run."""

    @property
    def part_of_quota(self) -> float | None:
        """The rate as a fraction of the quota; None without a quota."""
        return self.rate / self.flow.limit if self.flow.limit else None

    @property
    def complaint(self) -> str:
        """What is wrong with the result; empty if nothing is."""
        part = self.part_of_quota
        if part is not None:
            if abs(part - 1) <= TOLERANCE:
                return ""
            return f"{self.flow} {mib(self.rate)} MiB/s, {part:.0%} of its quota."
        if self.throttle_seconds > 0:
            return f"{self.flow} without a quota, but was throttled for {self.throttle_seconds:.1f} s."
        return "" if self.rate > 0 else f"{self.flow} nothing, though it has no quota."


def mib(size: float) -> str:
    """Bytes as MiB."""
    return f"{size / MIB:.2f}"


def table(results: Iterable[Result], plain: bool) -> Table:
    """Return the results as a table; `plain` draws its lines in ASCII."""
    shown = Table(box=box.ASCII2 if plain else box.ROUNDED)
    shown.add_column("tenant")
    for heading in ("", "quota MiB/s", "got MiB/s", "of quota", "throttled"):
        shown.add_column(heading, justify="right" if heading else "left")
    for result in results:
        flow, part = result.flow, result.part_of_quota
        quota, of_quota = ("none", "") if flow.limit is None else (mib(flow.limit), f"{part:.1%}")
        waited = f"{result.throttle_seconds:.1f} s"
        style = "red" if result.complaint else ""
        shown.add_row(flow.tenant, flow.verb, quota, mib(result.rate), of_quota, waited, style=style)
    return shown
