"""Page: the file of a bench's figures, `bench/results/NAME.md`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.output import machine

RESULTS: Final = Path(__file__).parents[1] / "results"


class Page:
    """The machine, the figures, and reasons to doubt them.

    Create it before the run, so that it does not count the load of the run itself.
    """

    def __init__(self) -> None:
        self.facts = machine.facts([])
        """The facts about the machine and the run, by name."""
        self.remarks = machine.warnings()

    def text(self, figures: Sequence[str]) -> str:
        """Return the page as Markdown; `figures` are lines."""
        facts = [f"{what}: {value}  " for what, value in self.facts.items()]
        remarks = [f"- {remark}" for remark in self.remarks]
        return "\n".join([*facts, "", *figures, "", *remarks]).rstrip("\n") + "\n"

    def save(self, name: str, figures: Sequence[str]) -> None:
        """Write the file and print it."""
        text = self.text(figures)
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.md").write_text(text)
        print(text)
