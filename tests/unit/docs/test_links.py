"""Every link to a page, file or heading of this repository has a target."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    page for folder in (ROOT, ROOT / "docs", ROOT / "bench", ROOT / "deploy") for page in folder.glob("*.md")
)
PATH = re.compile(
    r"`((?:[\w-]+/)+[\w.-]+\.(?:py|yaml|md|service|json)|(?:proxy|pipeline|tests|docs)/[\w/-]*)`"
)
"""A path in the text of a page, relative to the root, to `proxy` or to `tests`."""
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub generates for headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_paths_exist(page: Path) -> None:
    """The changelog names what has moved, and bench/results is written by benchmarks."""
    if page.name == "CHANGELOG.md":
        return
    for path in PATH.findall(page.read_text()):
        found = [(ROOT / folder / path).exists() for folder in ("", "proxy", "tests")]
        assert any(found) or path.startswith("bench/results/"), path


def test_every_page_of_docs_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [
        page.name for page in PAGES if page.parent == ROOT / "docs" and f"docs/{page.name}" not in readme
    ] == []
