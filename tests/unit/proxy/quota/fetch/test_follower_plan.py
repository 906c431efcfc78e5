import pytest

from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan
from proxy.wire.fetch.request import NO_BOUND
from proxy.wire.fetch.rewrite import Watermarks


def item(partition: int = 0, max_bytes: int = 1000) -> FollowerItem:
    made = FollowerItem("orders", partition, 2, Watermarks())
    made.max_bytes = max_bytes
    return made


def test_a_plan_decides_anew_about_what_it_includes() -> None:
    changed, other = item(0), item(1)
    for each in (changed, other):
        each.omitted = True
        each.bound = 5
    plan = FollowerPlan([changed], [], None)
    assert (changed.omitted, changed.bound) == (False, NO_BOUND)
    assert (other.omitted, other.bound) == (True, 5)
    plan.include(other)
    assert (plan.items, plan.included) == ([changed], [other])
    assert (other.omitted, other.bound) == (False, NO_BOUND)


def test_items_that_stay_omitted_are_counted() -> None:
    one = item()
    plan = FollowerPlan([one], [], None)
    plan.omit(one, 5.0)
    plan.omit_more(7)
    assert plan.omitted == 8


@pytest.mark.parametrize(("size", "bound"), [(300, 300), (1000, 1000), (5000, 1000)])
def test_a_granted_partition_has_a_bound_if_only_its_own(size: int, bound: int) -> None:
    one = item()
    plan = FollowerPlan([one], [], None)
    plan.grant(one, size)
    assert (one.bound, plan.bounded) == (bound, [one])
