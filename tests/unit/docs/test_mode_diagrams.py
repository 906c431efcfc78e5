"""docs/design.md draws the modes that proxy/relay/modes.py has."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPT = runpy.run_path(str(ROOT / "docs/mode_diagrams.py"))


def test_page_has_the_diagrams_as_they_are_made() -> None:
    page = (ROOT / "docs/design.md").read_text()
    assert SCRIPT["with_diagrams"](page) == page, "run docs/mode_diagrams.py"


def test_a_diagram_has_every_transition_and_the_end() -> None:
    requests = SCRIPT["diagrams"]()["Requests"]
    assert "    [*] --> reading\n" in requests
    assert "    buffering --> reading: the request is whole\n" in requests
    assert "    closing --> [*]\n" in requests
