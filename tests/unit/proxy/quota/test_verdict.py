import itertools

import pytest

from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.verdict import ALLOW, Verdict, combine


def bucket(name: str) -> Bucket:
    return Bucket(quota="producer_byte_rate", user=name, limit=1.0, rule=RateRule(burst_seconds=1.0), now=0.0)


SHORT, LONG = bucket("short"), bucket("long")


def fields(verdict: Verdict) -> tuple[float, Bucket | None]:
    return verdict.throttle_seconds, verdict.bucket


# first, second, both: (throttle seconds, bucket)
COMBINED = [
    ((0.0, None), (0.0, None), (0.0, None)),
    ((1.0, SHORT), (2.0, LONG), (2.0, LONG)),
    ((2.0, LONG), (1.0, SHORT), (2.0, LONG)),
    ((2.0, LONG), (2.0, SHORT), (2.0, SHORT)),
]


@pytest.mark.parametrize(("first", "second", "both"), COMBINED)
def test_combine(
    first: tuple[float, Bucket | None], second: tuple[float, Bucket | None], both: tuple[float, Bucket | None]
) -> None:
    assert fields(combine(Verdict(*first), Verdict(*second))) == both


def test_combining_with_allow_returns_the_other_verdict() -> None:
    verdict = Verdict(1.0, SHORT)
    assert combine(ALLOW, verdict) is verdict
    assert combine(verdict, ALLOW) is verdict
    assert combine(ALLOW, ALLOW) is ALLOW


def test_combining_changes_neither() -> None:
    verdicts = [Verdict(*row) for rows in COMBINED for row in rows[:2]]
    before = [fields(verdict) for verdict in verdicts]
    for first, second in itertools.product(verdicts, verdicts):
        combine(first, second)
    assert [fields(verdict) for verdict in verdicts] == before


def test_allow_has_no_wait() -> None:
    assert fields(ALLOW) == (0.0, None)
