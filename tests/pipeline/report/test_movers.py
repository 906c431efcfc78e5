"""Movers: the largest changes, up and down."""

from decimal import Decimal

from pipeline.report.figures import Use
from pipeline.report.movers import movers


def key(name: str) -> tuple[str, str, str]:
    return ("local", name, "")


def test_by_bytes_without_prices() -> None:
    now = {key("up"): Use(30, 5), key("new"): Use(20), key("same"): Use(7)}
    before = {key("up"): Use(10, 5), key("gone"): Use(0, 50), key("same"): Use(0, 7)}
    found = movers(now, before)
    assert [mover.tenant for mover in found] == [key("gone"), key("new"), key("up")]
    assert [mover.amounts for mover in found] == [None] * 3
    assert movers(now, before, most=1) == found[:1]


def test_by_amount_with_prices() -> None:
    """A tenant that fetches more may pay less than one that produces more."""
    now = {key("a"): Use(1000, 0, 0, 0, Decimal("1.00")), key("b"): Use(10, 0, 0, 0, Decimal("5.00"))}
    before = {key("b"): Use(9, 0, 0, 0, Decimal("2.00")), key("c"): Use(5, 0, 0, 0, Decimal("0.00"))}
    found = movers(now, before)
    assert [mover.tenant for mover in found] == [key("b"), key("a"), key("c")]
    assert found[1].amounts == (Decimal(0), Decimal("1.00"))


def test_nothing_changed() -> None:
    assert movers({}, {}) == []
    assert movers({key("a"): Use(1, 1)}, {key("a"): Use(2, 0)}) == []
