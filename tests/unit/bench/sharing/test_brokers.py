"""What is made of the rates of three producers."""

from bench.sharing.brokers import DIVIDED, LIMIT, NATIVE, NATIVE_END, PHASES, SHARED, pictures, report

SECONDS = 6
ONE = [1.0] * SECONDS
NOTHING = [0.0] * SECONDS


def rates(*producers: list[float]) -> list[list[float]]:
    return [[part * LIMIT for part in producer] for producer in producers]


FOUND = {
    SHARED: rates(
        ONE + [1 / 3] * SECONDS + [0.5] * SECONDS + ONE,
        NOTHING + [1 / 3] * SECONDS + [0.5] * SECONDS + NOTHING,
        NOTHING + [1 / 3] * SECONDS + NOTHING + NOTHING,
    ),
    DIVIDED: rates([1 / 3] * 4 * SECONDS, NOTHING * 4, NOTHING * 4),
    NATIVE: rates(ONE * 4, NOTHING + ONE * 2 + NOTHING, NOTHING + ONE + NOTHING * 2),
}


def test_the_report() -> None:
    lines = report(FOUND, SECONDS)
    assert len(lines) == 2 + 3 * len(PHASES)
    for phase in PHASES:
        assert f"| {SHARED} | {phase} | 1.000 | 0.000 | 1.00 |" in lines
        assert any(line.startswith(f"| {DIVIDED} | {phase} | 0.333 |") for line in lines)
    assert f"| {NATIVE} | three producers | 3.000 | 0.000 | 3.00 |" in lines
    assert f"| {NATIVE} | {NATIVE_END} | 1.000 | 0.000 | 1.00 |" in lines


def test_a_phase_without_bytes() -> None:
    assert f"| {SHARED} | one producer | 0.000 | 0.000 | 0.00 |" in report(
        {SHARED: rates(NOTHING * 4)}, SECONDS
    )


def test_the_pictures_have_each_proxy_their_sum_and_each_way() -> None:
    drawn = pictures(FOUND, SECONDS)
    shared, compared = drawn.values()
    assert [line.name for line in shared.lines] == [*(f"through proxy {name}" for name in "abc"), "all"]
    assert max(abs(value - 1.0) for value in shared.lines[-1].values) < 1e-9
    assert [line.name for line in compared.lines] == [SHARED, DIVIDED, NATIVE]
    assert [at for at, _ in shared.marks] == [0.0, 6.0, 12.0, 18.0]
    assert all(chart.svg().startswith("<svg") for chart in drawn.values())
