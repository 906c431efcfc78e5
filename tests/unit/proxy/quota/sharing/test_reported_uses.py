"""Which uses a process reports: those that the others do not know."""

import pytest

from proxy.quota.sharing.reported_uses import REPORT_BYTES, ReportedUses
from proxy.quota.sharing.reports import BucketReport, size_in_report


def use(
    key: str = "k", used: float = 0.0, demand: float = 100.0, waiting: int = 0, limit: float = 100.0
) -> BucketReport:
    return BucketReport(key=key, limit=limit, used=used, demand=demand, waiting=waiting)


def keys(uses: list[BucketReport]) -> list[str]:
    return [each.key for each in uses]


def test_a_bucket_is_reported_once_until_its_use_changes() -> None:
    uses = ReportedUses()
    assert keys(uses.take([None, use()])) == ["k"]
    assert uses.take([use()]) == []


@pytest.mark.parametrize(
    "changed", [use(used=1.0), use(limit=200.0), use(waiting=1), use(demand=105.4), use(demand=94.0)]
)
def test_a_change_is_reported(changed: BucketReport) -> None:
    uses = ReportedUses()
    uses.take([use()])
    assert keys(uses.take([changed])) == ["k"]
    assert uses.take([changed]) == []


@pytest.mark.parametrize("demand", [104.0, 96.0])
def test_a_small_change_of_the_demand_is_not_reported(demand: float) -> None:
    uses = ReportedUses()
    uses.take([use()])
    assert uses.take([use(demand=demand)]) == []


def test_it_is_known_which_buckets_were_reported_as_unused() -> None:
    uses = ReportedUses()
    uses.take([use("idle", demand=0.0), use("busy")])
    assert (uses.has("idle"), uses.has("busy"), uses.has("other")) == (True, True, False)
    assert (uses.idle("idle"), uses.idle("busy"), uses.idle("other")) == (True, False, False)


def test_what_is_forgotten_is_reported_again() -> None:
    uses = ReportedUses()
    both = [use("a"), use("b")]
    uses.take([*both])
    uses.forget("a")
    uses.forget("never reported")
    assert keys(uses.take([*both])) == ["a"]
    uses.clear()
    assert keys(uses.take([*both])) == ["a", "b"]


def test_the_next_report_begins_with_what_had_no_room() -> None:
    uses = ReportedUses()
    fit = REPORT_BYTES // size_in_report("000")
    every = [use(f"{number:03}") for number in range(fit + 2)]
    assert keys(uses.take([*every])) == keys(every[:fit])
    assert uses.more
    # All have changed: the two that had no room come first.
    changed = [use(each.key, used=1.0) for each in every]
    assert keys(uses.take([*changed])) == [*keys(every[fit:]), *keys(every[: fit - 2])]
    assert uses.more


def test_a_bucket_of_any_size_is_reported() -> None:
    uses = ReportedUses()
    assert len(uses.take([use("x" * REPORT_BYTES), use()])) == 1
    assert keys(uses.take([use("x" * REPORT_BYTES), use()])) == ["k"]
    assert not uses.more


def test_fewer_buckets_than_before_are_reported_from_the_first() -> None:
    uses = ReportedUses()
    uses.take([use("x" * REPORT_BYTES), use("y")])
    assert uses.more
    assert keys(uses.take([use("z")])) == ["z"]
    assert uses.take([]) == []
