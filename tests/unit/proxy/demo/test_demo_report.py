import pytest
from rich.console import Console

from proxy.demo.demo_report import Result, table
from proxy.demo.tenants import CONSUMER, PRODUCER, Flow

MIB = 1 << 20


def result(rate: float, limit: int | None = 100, waited: float = 3.0, key: str = PRODUCER) -> Result:
    return Result(Flow("alice", key, limit), rate, waited)


@pytest.mark.parametrize("rate", [91.0, 100.0, 109.0])
def test_a_rate_near_the_quota_is_no_complaint(rate: float) -> None:
    assert result(rate).complaint == ""


@pytest.mark.parametrize(("rate", "part"), [(0.0, "0%"), (89.0, "89%"), (111.0, "111%")])
def test_a_rate_far_from_the_quota_is_a_complaint(rate: float, part: str) -> None:
    rates = f"{rate / MIB:.2f} MiB/s, {part} of its quota."
    assert result(rate).complaint == f"alice produces {rates}"
    assert result(rate, key=CONSUMER).complaint == f"alice consumes {rates}"


def test_without_a_quota_only_throttling_is_a_complaint() -> None:
    assert result(1e9, limit=None, waited=0.0).complaint == ""
    assert result(0.0, limit=None, waited=0.0).complaint == "alice produces nothing, though it has no quota."
    assert (
        result(1e9, limit=None, waited=0.5).complaint
        == "alice produces without a quota, but was throttled for 0.5 s."
    )


def shown(plain: bool) -> str:
    console = Console(width=80, force_terminal=not plain, legacy_windows=False)
    results = [result(0.99 * MIB, MIB, 11.44), result(2.5 * MIB, None, 0.0, CONSUMER), result(0.5 * MIB, MIB)]
    with console.capture() as capture:
        console.print(table(results, plain))
    return capture.get()


def test_the_table_has_a_line_for_each_flow() -> None:
    rows = [line.strip("|").split("|") for line in shown(plain=True).splitlines() if "alice" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["alice", "produces", "1.00", "0.99", "99.0%", "11.4 s"],
        ["alice", "consumes", "none", "2.50", "", "0.0 s"],
        ["alice", "produces", "1.00", "0.50", "50.0%", "3.0 s"],
    ]


def test_the_table_is_ascii_without_a_terminal() -> None:
    assert shown(plain=True).isascii()
    assert "\x1b" not in shown(plain=True)
    assert not shown(plain=False).isascii()
