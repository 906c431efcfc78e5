"""Pages name each metric as /metrics does."""

import re
from pathlib import Path

import pytest

from proxy.quota.kinds import load_kinds
from proxy.relay import close_reasons

ROOT = Path(__file__).parents[3]
PREFIX = "quota_proxy_"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
METRICS = {
    name for name in re.findall(rf"`{PREFIX}(\w+)`", (ROOT / "docs/metrics.md").read_text()) if "_" in name
}
"""Without those whose name is one word, which may mean anything."""
OTHERS = {"quota_limit", *(key.name for kind in load_kinds() for key in kind.keys)}
"""A method of callbacks, and quotas: each has a metric of the same name."""


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_metrics_have_their_prefix(page: Path) -> None:
    named = re.findall(r"`(\w+)(?:\{[^`]*)?`", page.read_text())
    assert sorted(METRICS.intersection(named) - OTHERS) == []


def test_metrics_are_found() -> None:
    assert {"throttled_requests_total", "replica_lag"} <= METRICS


def test_the_page_has_every_reason_for_a_closed_connection() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    section = page.split("\n### Reasons for closed connections\n")[1].split("\n## ")[0]
    reasons = [value for name, value in vars(close_reasons).items() if name.isupper()]
    assert len(reasons) >= 18
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert sorted(reasons) == sorted(name for cell in cells[1:] for name in re.findall(r"\w+", cell))
