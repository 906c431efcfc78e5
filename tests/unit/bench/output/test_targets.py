"""The targets, compared with figures."""

import pytest

from bench.output.summary import Figure, Summary
from bench.output.targets import TARGETS, verdicts

ANY = Figure(1, 1)


def summary(peer: str, ratio: Figure) -> Summary:
    return Summary(peer, ANY, ANY, ANY, ANY, cpu_ratio=ratio)


@pytest.mark.parametrize(("ratio", "word"), [(1.6, "met"), (1.61, "missed")])
def test_a_ratio_up_to_the_limit_meets_it(ratio: float, word: str) -> None:
    results = {"produce_small": [summary("haproxy", ANY), summary("proxy", Figure(ratio, 2.0))]}
    line = verdicts(results)[0]
    assert f"{ratio:.2f} times HAProxy's (median 2.00)" in line
    assert line.endswith(f"at most 1.6 times HAProxy's: {word}")


def test_ratios_to_a_baseline_are_not_compared_with_the_targets() -> None:
    results = {"produce_small": [summary(peer, ANY) for peer in ("haproxy", "baseline", "proxy")]}
    assert "not measured" in verdicts(results)[0]


def test_it_takes_haproxy_and_the_compiled_proxy() -> None:
    half = Figure(0.5, 0.5)
    for peers in (["haproxy", "proxy-interpreted"], ["relay", "proxy"], []):
        results = {target.scenario: [summary(peer, half) for peer in peers] for target in TARGETS}
        assert all("not measured" in line for line in verdicts(results))
