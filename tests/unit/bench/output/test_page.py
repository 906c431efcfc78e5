"""A bench's page: where it was measured, what came of it, and what makes that doubtful."""

import pytest

from bench.output import machine
from bench.output.page import Page


def test_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    load = iter([0.1, 9.0])
    monkeypatch.setattr(machine, "facts", lambda peers: {"load before": str(next(load))})
    monkeypatch.setattr(machine, "warnings", list)
    page = Page()
    page.facts["build"] = "proxy"
    page.remarks.append("a remark")
    assert page.text(["| a |", "|---|"]) == (
        "load before: 0.1  \nbuild: proxy  \n\n| a |\n|---|\n\n- a remark\n"
    )


def test_nothing_doubtful_leaves_no_empty_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "warnings", list)
    assert Page().text(["- met"]).endswith("\n\n- met\n")
