"""Page: a bench's file of figures, `bench/results/NAME.md`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import machine

RESULTS: Final = Path(__file__).parent / "results"


class Page:
    """What was measured on, the figures, and what makes them doubtful. It is made before the run, whose own
    load is no doubt.
    """

    def __init__(self) -> None:
        self.facts = machine.facts([])
        """By what they are."""
        self.remarks = machine.warnings()

    def text(self, figures: Sequence[str]) -> str:
        """All of it, as Markdown; `figures` are lines."""
        facts = [f"{what}: {value}  " for what, value in self.facts.items()]
        remarks = [f"- {remark}" for remark in self.remarks]
        return "\n".join([*facts, "", *figures, "", *remarks]).rstrip("\n") + "\n"

    def save(self, name: str, figures: Sequence[str]) -> None:
        """Write the file, and print it."""
        text = self.text(figures)
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.md").write_text(text)
        print(text)
