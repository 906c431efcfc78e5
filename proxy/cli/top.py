"""`quota-proxy top`: the buckets of a running proxy as a table, throttled ones first."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from proxy.cli.admin_port import AdminPort
from proxy.cli.quotas.entity import show_name
from proxy.cli.quotas.output import NOTHING, columns, text_width
from proxy.errors import UpstreamUnavailable

if TYPE_CHECKING:
    from rich.console import Console

Bucket = Mapping[str, Any]
"""A bucket: an object of /api/quotas."""
QUOTAS: Final = "/api/quotas"
SHARES: Final = "/api/shares"
_HEAD: Final = ("QUOTA", "ENTITY", "BROKER", "LIMIT/S", "SHARE/S", "NOW/S", "USED", "WAITED", "STATE")
_QUOTA, _ENTITY, _SHARE, _USED = map(_HEAD.index, ("QUOTA", "ENTITY", "SHARE/S", "USED"))
_EXPENDABLE: Final = tuple(map(_HEAD.index, ("WAITED", "BROKER", "SHARE/S", "LIMIT/S", "NOW/S")))
"""Columns that a narrow terminal does not show, the first first."""
_LEAST_ENTITY: Final = 16
"""Columns are omitted before the names of entities get narrower than this."""
_LEAST_QUOTA: Final = 10
"""Names of quotas do not get narrower than this; the last column to be omitted is USED."""
_CUT: Final = ".."
"""The end of a name that is cut."""
_GAP: Final = 2
"""Spaces between columns."""
_AROUND: Final = 3
"""Lines of the screen without a bucket: the head, the summary and the cursor."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_WHOLE: Final = 0.999
"""A share of at least this part of the limit is the whole limit."""


def table(port: AdminPort, most: int | None = None, width: int | None = None) -> list[str]:
    """Read the buckets, and return them as a table. Raises UpstreamUnavailable."""
    buckets = port.get(QUOTAS, "quotas")
    more: list[str] = []
    if any(map(_is_shared, buckets)):
        instances, degraded = port.values(SHARES, "instances", degraded=False)
        if instances:
            more.append(f"limits are shared by {', '.join(map(_show_instance, instances))}")
        if degraded:
            more.append("sharing is degraded, and /readyz says why")
    return lines(buckets, most, more, width)


def lines(
    buckets: Sequence[Bucket],
    most: int | None = None,
    more: Iterable[str] = (),
    width: int | None = None,
) -> list[str]:
    """Return the table, with at most `most` buckets, and a summary line.

    more: what the summary says besides. width: the columns of the terminal, to which the table is fitted. The
    table has the shares of this process if a share is less than its limit.
    """
    shown = sorted(buckets, key=_place)
    if most is not None:
        shown = shown[: max(most, 0)]
    has_shares = any(map(_is_shared, buckets))
    rows: Sequence[Sequence[str]] = [_HEAD, *map(_row, shown)]
    omitted = set() if has_shares else {_SHARE}
    if width is not None:
        rows = _fitted(rows, omitted, width)
    head, *rows = [[cell for place, cell in enumerate(row) if place not in omitted] for row in rows]
    throttled = sum(bool(bucket["throttled"]) for bucket in buckets)
    summary = [f"{len(buckets)} buckets, {throttled} throttled"]
    if len(buckets) > len(shown):
        summary.append(f"{len(buckets) - len(shown)} are not shown")
    return [*columns(head, rows), "; ".join([*summary, *more])]


def _show_instance(instance: Mapping[str, Any]) -> str:
    """The name of an instance, and how many processes have it if there are several."""
    name, processes = show_name(str(instance["instance"])), instance.get("processes", 1)
    return f"{name} ({processes} processes)" if processes > 1 else name


def _row(bucket: Bucket) -> list[str]:
    kind = bucket["kind"]
    broker = bucket["broker"]
    entity = ", ".join(f"{part} {show_name(str(name))}" for part, name in bucket["entity"].items())
    state = "throttled" if bucket["throttled"] else ""
    if bucket["mode"] == "observe":
        state = f"would be {state}" if state else "observed"
    return [
        kind,
        entity or NOTHING,
        NOTHING if broker is None else str(broker),
        _amount(kind, bucket["limit"]),
        _amount(kind, bucket["share"]),
        _amount(kind, bucket["rate"]),
        f"{_used(bucket):.0%}",
        f"{bucket['throttle_seconds']:.1f} s",
        state,
    ]


def _fitted(rows: Sequence[Sequence[str]], omitted: set[int], width: int) -> list[Sequence[str]]:
    """Add to `omitted` the columns for which a terminal of this width has no place, and cut the entities."""
    widths = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
    least = min(widths[_ENTITY], _LEAST_ENTITY)

    def room() -> int:
        """For the quotas and the entities."""
        others = [each for place, each in enumerate(widths) if place not in (*omitted, _QUOTA, _ENTITY)]
        return width - sum(others) - _GAP * (len(others) + 1)

    for place in _EXPENDABLE:
        if room() >= widths[_QUOTA] + least:
            break
        omitted.add(place)
    if room() < _LEAST_QUOTA + least:
        omitted.add(_USED)
    quota = max(min(room() - least, widths[_QUOTA]), _LEAST_QUOTA)
    entity = max(room() - quota, least)
    return [(_cut(row[_QUOTA], quota), _cut(row[_ENTITY], entity), *row[_ENTITY + 1 :]) for row in rows]


def _cut(text: str, width: int) -> str:
    if text_width(text) <= width:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, width - len(_CUT)) + _CUT


def _is_shared(bucket: Bucket) -> bool:
    """Whether this proxy has only a part of the limit."""
    return float(bucket["share"]) < float(bucket["limit"]) * _WHOLE


def _place(bucket: Bucket) -> tuple[bool, float, str]:
    """Sort key: throttled buckets first, then by the used part of the share."""
    return not bucket["throttled"], -_used(bucket), str(bucket["entity"])


def _used(bucket: Bucket) -> float:
    """The rate as a part of what this proxy may use of the limit."""
    share = float(bucket["share"])
    return float(bucket["rate"]) / share if share > 0.0 else 0.0


def _amount(kind: str, value: float) -> str:
    """Format a limit or a rate: bytes with a unit, others as a number."""
    if "byte" not in kind and "replication" not in kind:
        return f"{value:.4g}"
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} {_UNITS[-1]}"


def show(port: AdminPort, console: "Console") -> None:
    """Print the table once. Raises UpstreamUnavailable."""
    for line in table(port):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def follow(
    port: AdminPort, console: "Console", interval: float, pause: Callable[[float], None] = time.sleep
) -> None:
    """Show the table on the whole screen, and update it every `interval` seconds until `pause` raises
    KeyboardInterrupt.

    Raises UpstreamUnavailable if the first request fails; later requests are retried.
    """
    from rich.live import Live
    from rich.text import Text

    text = "\n".join(table(port, console.height - _AROUND, console.width))
    with Live(Text(text), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)
                pause(interval)
                try:
                    text = "\n".join(table(port, console.height - _AROUND, console.width))
                except UpstreamUnavailable as error:
                    text = f"{error}\nRetrying every {interval:g} s; Ctrl-C exits."
        except KeyboardInterrupt:
            return
