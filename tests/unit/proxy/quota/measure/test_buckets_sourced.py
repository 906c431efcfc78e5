"""Buckets whose limits come from a LimitSource."""

import pytest

from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.limit_source import LimitSource, SourcedLimit
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.scopes import BROKER_SCOPE, CLUSTER_SCOPE, Scopes
from proxy.quota.measure.buckets import Buckets
from proxy.quota.measure.rate_rule import RateRule
from tests.support.present import present
from tests.support.quotas.enforcement import enforcement

KEY = "producer_byte_rate"
RULE = RateRule(burst_seconds=1.0)
EACH_USER = {QuotaEntity(DEFAULT, None): {KEY: 1000.0}}


def who(user: str = "u") -> Identity:
    return Identity(user, "c", "127.0.0.1")


def names(found: Buckets) -> list[tuple[str, str, float]]:
    return sorted((bucket.user, bucket.client_id, bucket.limit) for bucket in found.live())


class Counting(LimitSource):
    """Gives user u a limit of its own, and counts the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def find(
        self, key: str, user: str, client_id: str, now: float, topic: str = "", partition: int = -1
    ) -> SourcedLimit | None:
        self.calls += 1
        return SourcedLimit(user, "", 5.0) if user == "u" else None


def test_the_limits_of_a_source_have_the_default_scope() -> None:
    source, other = Counting(), QuotaEntity("v", None)
    settings = enforcement(scopes=Scopes(BROKER_SCOPE, [QuotaEntity("u", None), other]))
    quotas = {**EACH_USER, QuotaEntity("u", None): {KEY: 7.0}, other: {KEY: 8.0}}
    limits = Limits(quotas, settings=settings, source=source)
    broker, cluster = [Buckets(KEY, limits.within(scope), RULE) for scope in (BROKER_SCOPE, CLUSTER_SCOPE)]
    for user in "uvw":
        broker.find(who(user), 0.0)
        cluster.find(who(user), 0.0)
    assert names(broker) == [("u", "", 5.0), ("w", "", 1000.0)]
    assert names(cluster) == [("v", "", 8.0)]
    calls = source.calls
    assert cluster.find(who("u"), 1.0) is None
    assert source.calls == calls
    flipped = enforcement(scopes=Scopes(CLUSTER_SCOPE))
    changed = Limits(quotas, settings=flipped, source=source)
    broker.inherit_from(cluster)
    cluster.inherit_from(broker)
    present(broker.find(who("u"), 1.0)).record(100.0, 1.0)
    for buckets_of, scope in ((broker, BROKER_SCOPE), (cluster, CLUSTER_SCOPE)):
        buckets_of.configure(changed.within(scope), RULE, 1.0)
        buckets_of.find(who("u"), 1.0)
    assert names(broker) == []
    assert ("u", "", 5.0) in names(cluster)
    assert present(present(cluster.find(who("u"), 1.0)).tokens).measure(1.0) == -95.0


def test_clients_that_are_not_idle_are_still_found_at_once_after_the_sweep() -> None:
    """A sweep that made every client look its quota up anew would cost all of them each minute."""
    source = Counting()
    found = Buckets(KEY, Limits(EACH_USER, source=source), RULE)
    found.find(who("w"), 0.0)
    used = present(found.find(who("v"), 0.0))
    used.record(1, 1000.0)
    calls = source.calls
    found.forget_idle(3600.0)
    assert names(found) == [("v", "", 1000.0)]
    assert found.find(Identity("v", "c", "127.0.0.1"), 3600.0) is used
    assert source.calls == calls


class Same(LimitSource):
    """Gives each user this limit."""

    def __init__(self, limit: float, keep: bool) -> None:
        super().__init__()
        self.limit = limit
        self.keep = keep

    def find(
        self, key: str, user: str, client_id: str, now: float, topic: str = "", partition: int = -1
    ) -> SourcedLimit:
        return SourcedLimit(user, "", self.limit, keep=self.keep)


@pytest.mark.parametrize("keep", [True, False])
def test_a_bucket_whose_limit_changes_keeps_its_debt(keep: bool) -> None:
    source = Same(1000.0, keep)
    made = Buckets(KEY, Limits({}, source=source), RULE)
    bucket = present(made.find(who(), 0.0))
    bucket.record(3000, 0.0)
    source.limit = 500.0
    assert made.find(who(), 0.0) is bucket
    assert bucket.limit == (1000.0 if keep else 500.0), "a result that may be kept is kept"
    made.configure(Limits({}, source=Same(500.0, keep)), RULE, 0.0)
    assert made.find(who(), 0.0) is bucket
    assert (bucket.limit, present(bucket.tokens).measure(0.0)) == (500.0, -2000.0)
