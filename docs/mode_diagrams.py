"""Puts the state diagrams of docs/design.md right, from the tables in proxy/relay/modes.py.

    .venv/bin/python docs/mode_diagrams.py

A test fails while the page has others.
"""

import re
from pathlib import Path

from proxy.relay.modes import NAMES, READING, REQUEST_TRANSITIONS, RESPONSE_TRANSITIONS, Transitions

PAGE = Path(__file__).with_name("design.md")


def diagram(title: str, transitions: Transitions) -> str:
    """A state diagram in Mermaid's language."""
    lines = ["```mermaid", "stateDiagram-v2", f"    %% {title}", f"    [*] --> {NAMES[READING]}"]
    lines += [
        f"    {NAMES[before]} --> {NAMES[after]}: {why}" for (before, after), why in transitions.items()
    ]
    final = sorted({after for _, after in transitions} - {before for before, _ in transitions})
    lines += [f"    {NAMES[mode]} --> [*]" for mode in final]
    return "\n".join([*lines, "```"])


def diagrams() -> dict[str, str]:
    """The diagrams by title."""
    tables = {"Requests": REQUEST_TRANSITIONS, "Responses": RESPONSE_TRANSITIONS}
    return {title: diagram(title, table) for title, table in tables.items()}


def with_diagrams(page: str) -> str:
    """The page with the diagrams as they are now."""
    for title, text in diagrams().items():
        pattern = rf"```mermaid\nstateDiagram-v2\n    %% {title}\n.*?\n```"
        page, found = re.subn(pattern, lambda _, text=text: text, page, flags=re.DOTALL)
        assert found == 1, f"{PAGE.name} has {found} diagrams of {title}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_diagrams(PAGE.read_text()))
