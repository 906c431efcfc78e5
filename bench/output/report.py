"""Writes a run as JSON, as Markdown and to the terminal."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.output.bar_chart import Bar, BarChart
from bench.output.summary import Figure, Summary
from bench.output.targets import verdicts
from bench.rounds import Sample
from bench.scenarios import Scenario

NOT_DRAWN: Final = ("direct", "proxy-interpreted")
"""Peers without a process of their own, or that are not what users run."""
Cell = Callable[[Summary], str]
"""Formats one field of a row."""
NOTE: Final = "Best of {rounds} rounds (median in brackets); CPU is the peer's process alone."


@dataclass(frozen=True)
class Report:
    """The results of one run."""

    name: str
    rounds: int
    reference: str
    machine: Mapping[str, str]
    remarks: Sequence[str]
    scenarios: Sequence[Scenario]
    samples: Mapping[str, Mapping[str, Sequence[Sample]]]
    summaries: Mapping[str, Sequence[Summary]]

    def save(self, folder: Path) -> list[Path]:
        """Write NAME.json, with every sample, and NAME.md; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        data, text = folder / f"{self.name}.json", folder / f"{self.name}.md"
        content = {**asdict(self), "targets": verdicts(self.summaries)}
        data.write_text(json.dumps(content, indent=2) + "\n")
        text.write_text(self.markdown())
        return [data, text]

    def markdown(self) -> str:
        """Format tables and targets for docs/performance.md."""
        lines = [f"{what}: {value}  " for what, value in self.machine.items()]
        lines += ["", NOTE.format(rounds=self.rounds)]
        for scenario in self.scenarios:
            columns = self._columns(scenario)
            lines += ["", f"### {scenario.title}", "", _row(columns)]
            lines.append(_row(["---"] + ["---:"] * (len(columns) - 1)))
            rows = self.summaries[scenario.name]
            lines += [_row([cell(row) for cell in columns.values()]) for row in rows]
        lines += ["", "### Targets", ""]
        lines += [f"- {line}" for line in [*verdicts(self.summaries), *self.remarks]]
        return "\n".join(lines) + "\n"

    def picture(self) -> BarChart:
        """The CPU of each peer as a multiple of the reference's median, with the spread of the rounds."""
        chart = BarChart("CPU of each proxy", f"{self.reference} = 1")
        for scenario in self.scenarios:
            samples = self.samples[scenario.name]
            if scenario.rate or self.reference not in samples:
                continue
            cpu = {
                name: sorted(sample["cpu_s"] for sample in own)
                for name, own in samples.items()
                if name not in NOT_DRAWN
            }
            base = median(cpu[self.reference])
            bars = [Bar(name, own[0] / base, median(own) / base, own[-1] / base) for name, own in cpu.items()]
            chart.groups.append((scenario.name, bars))
        return chart

    def show(self, console: Console) -> None:
        """Print the tables to the terminal."""
        for scenario in self.scenarios:
            table = Table(title=scenario.title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
            columns = self._columns(scenario)
            for number, column in enumerate(columns):
                table.add_column(column, justify="right" if number else "left", no_wrap=not number)
            for summary in self.summaries[scenario.name]:
                table.add_row(*(cell(summary) for cell in columns.values()))
            console.print(table)
        console.print(NOTE.format(rounds=self.rounds))
        for line in [*verdicts(self.summaries), *self.remarks]:
            console.print(f"- {line}", highlight=False, markup=False, soft_wrap=True)

    def _columns(self, scenario: Scenario) -> dict[str, Cell]:
        """The headers and cells that apply to this kind of load."""
        columns: dict[str, Cell] = {"peer": lambda summary: summary.peer}
        if scenario.kind == "fetch":
            columns["MiB/s"] = lambda summary: _figure(summary.mib_per_s, 0)
            columns["CPU s per GiB"] = lambda summary: _figure(summary.cpu_s_per_gib, 2)
        else:
            if not scenario.rate:
                columns["requests/s"] = lambda summary: _figure(summary.requests_per_s, 0)
            columns["CPU ms per 1,000"] = lambda summary: _figure(summary.cpu_ms_per_1k_req, 2)
        columns[f"CPU x {self.reference}"] = lambda summary: _figure(summary.cpu_ratio, 2)
        columns["p99 ms"] = lambda summary: _figure(summary.p99_ms, 2)
        if scenario.rate:
            columns["added p99 ms"] = lambda summary: _figure(summary.added_p99_ms, 2)
        columns["peak MiB"] = _memory
        return columns


def _memory(summary: Summary) -> str:
    return "-" if summary.peak_rss_mib is None else f"{summary.peak_rss_mib:.0f}"


def _figure(figure: Figure | None, digits: int) -> str:
    if figure is None:
        return "-"
    return f"{figure.best:,.{digits}f} ({figure.median:,.{digits}f})"


def _row(values: Iterable[str]) -> str:
    return f"| {' | '.join(values)} |"
