"""The documentation as a site: it has every page, and MkDocs finds nothing to warn of."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
MKDOCS = shutil.which("mkdocs") or shutil.which("mkdocs", path=str(Path(sys.executable).parent))
PAGE = re.compile(r"(?m)^ +- [^:]+: ([\w-]+\.md)$")


def test_every_page_is_in_the_navigation_once() -> None:
    listed = PAGE.findall((ROOT / "mkdocs.yml").read_text())
    assert sorted(listed) == sorted(page.name for page in DOCS.glob("*.md"))


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[`config/a.yaml`](../config/a.yaml)", "`config/a.yaml`"),
        ("[deploy](../deploy/README.md#the-image)", "deploy (`deploy/README.md`)"),
        ("[a page](quotas.md#x) and [`c`](../c)", "[a page](quotas.md#x) and `c`"),
    ],
)
def test_links_out_of_the_site_become_paths(markdown: str, shown: str) -> None:
    assert runpy.run_path(str(DOCS / "site_hooks.py"))["on_page_markdown"](markdown, page=None) == shown


@pytest.mark.skipif(MKDOCS is None, reason="mkdocs is not installed: make docs has it in its own environment")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    assert MKDOCS is not None
    command = [MKDOCS, "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/index.html").exists()
