"""What this process's buckets used, and their parts."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import OBSERVE
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.measure.rates import EwmaRate
from proxy.quota.sharing.local_uses import WAITED_SECONDS, LocalUses, bucket_key
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import Sharing

PACED = RateRule(burst_seconds=1.0)


def bucket(user: str = "u", rule: RateRule = PACED, client_id: str = "", limit: float = 100.0) -> Bucket:
    return Bucket(quota="q", limit=limit, rule=rule, now=0.0, user=user, client_id=client_id)


def client(name: str) -> Identity:
    return Identity("u", name, "10.0.0.1")


def test_use_is_what_was_used_and_paid() -> None:
    uses, ours = LocalUses(), bucket()
    uses.look([(1, ours)], 10.0)
    ours.record(250.0, 10.0, client("c"))
    [use] = uses.look([(1, ours)], 10.5)
    # The bucket was full with 100, and 50 came in half a second: of 250, 100 are owed.
    assert use.used == pytest.approx(150.0)
    assert use.rate == pytest.approx(300.0)
    assert (use.limit, use.waiting) == (100.0, 1)


def test_connections_count_as_waiting_for_a_while() -> None:
    uses, ours = LocalUses(), bucket()
    for name in "abc":
        ours.record(100.0, 10.0, client(name))
    assert uses.look([(1, ours)], 11.9)[0].waiting == 2
    assert uses.look([(1, ours)], 12.5)[0].waiting == 2
    assert uses.look([(1, ours)], 12.0 + WAITED_SECONDS)[0].waiting == 0


def test_without_tokens_one_connection_waits() -> None:
    uses, ours = LocalUses(), bucket(rule=RateRule())
    ours.record(10_000.0, 10.0, client("c"))
    assert uses.look([(1, ours)], 10.1)[0].waiting == 1


def test_idle_buckets_are_reported_once_and_again_when_they_are_used() -> None:
    uses, ours = LocalUses(), bucket()
    uses.look([(1, ours)], 9.0)
    ours.record(50.0, 10.0, client("c"))
    rates = [[use.rate for use in uses.look([(1, ours)], now)] for now in (10.0, 11.0, 12.0)]
    assert rates == [[50.0], [0.0], []]
    ours.record(150.0, 12.5, client("c"))
    [use] = uses.look([(1, ours)], 13.0)
    assert (use.rate, use.waiting) == (pytest.approx(150.0), 0)


def test_a_bucket_with_a_debt_is_not_idle() -> None:
    uses, ours = LocalUses(), bucket()
    ours.record(1000.0, 10.0, client("c"))
    assert [len(uses.look([(1, ours)], 10.0 + at)) for at in range(9)] == [1] * 9


def test_averages_and_observed_buckets_are_not_shared() -> None:
    average = bucket()
    average.average = EwmaRate(60.0)
    assert LocalUses().look([(1, average), (1, bucket(rule=RateRule(mode=OBSERVE)))], 10.0) == []


def test_each_bucket_gets_its_part() -> None:
    uses, sharing = LocalUses(), Sharing("a")
    ours, theirs = bucket("u"), bucket("v", rule=RateRule())
    uses.look([(1, ours), (1, theirs)], 10.0)
    for name in ("a", "b", "a", "b"):
        number = 2 if sharing.instances == 2 else 1
        sharing.see(Report(instance=name, number=number, read_to=9, buckets=[]), number, 1_000)
    uses.apply(sharing, 10.0)
    assert (ours.limit, ours.whole_limit) == (50.0, 100.0)
    assert theirs.limit == 50.0


def test_names_do_not_run_together() -> None:
    keys = {
        bucket_key(1, bucket("a", client_id="b")),
        bucket_key(1, bucket("ab")),
        bucket_key(1, bucket("a1:b")),
        bucket_key(2, bucket("ab")),
        bucket_key(1, bucket("a", client_id="b,/1")),
    }
    assert len(keys) == 5
