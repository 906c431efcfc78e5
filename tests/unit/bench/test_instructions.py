"""What is counted, and how it is shown. The run itself needs valgrind and a minute."""

from pathlib import Path

import pytest

from bench import instructions
from bench.instructions import CASES, ENFORCED, report, setting, total


def test_each_row_enforces_more(tmp_path: Path) -> None:
    settings = [setting(enforced, 1, tmp_path, False) for enforced in ENFORCED]
    assert [each.tenants for each in settings] == [0, 1000, 1000]
    assert [len(each.kinds) > 0 for each in settings] == [False, False, True]


def test_the_counts_are_a_table() -> None:
    lines = report({"nothing": {case.name: 12345.6 for case in CASES}}, list(CASES))
    names = "produce_1 | produce_24 | fetch_1 | fetch_24 | fetch_1mb | produce_tls | fetch_tls"
    assert lines[0] == f"| enforced | {names} |"
    assert lines[2] == f"| nothing |{' 12,346 |' * len(CASES)}"


def test_the_total_of_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / "callgrind.out.1"
    dump.write_text("# callgrind format\nevents: Ir\nfn=(1) main\n1 7\n\ntotals: 123456\n")
    assert total(dump) == 123456
    monkeypatch.setattr(instructions, "DUMP_SECONDS", 0.0)
    with pytest.raises(TimeoutError):
        total(tmp_path / "callgrind.out.2")
