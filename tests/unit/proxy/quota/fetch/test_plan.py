import pytest

from proxy.quota.fetch.plan import NO_KEY, FetchItem, FetchPlan
from proxy.wire.fetch.request import NO_BOUND
from proxy.wire.fetch.rewrite import Watermarks


def item(partition: int = 0, max_bytes: int = 1000, batch_bytes: int = 0) -> FetchItem:
    made = FetchItem("orders", partition, Watermarks(), NO_KEY)
    made.max_bytes = max_bytes
    made.marks.batch_bytes = batch_bytes
    return made


def test_a_new_plan_omits_nothing() -> None:
    plan = FetchPlan()
    assert (plan.bounded, plan.omitted, plan.ask_again_at) == ([], 0, 0.0)


def test_an_item_is_decided_about_anew() -> None:
    one = item()
    one.omitted = True
    one.bound = 5
    one.decide_anew()
    assert not one.omitted
    assert one.bound == NO_BOUND


def test_a_partition_omitted_twice_counts_once_and_is_asked_about_at_the_earliest_time() -> None:
    items = [item(0), item(1)]
    plan = FetchPlan()
    plan.omit(items[1], 12.0)
    plan.omit(items[1], 11.0)
    plan.omit(items[1], 13.0)
    assert ([one.omitted for one in items], plan.omitted, plan.ask_again_at) == ([False, True], 1, 11.0)


@pytest.mark.parametrize(
    ("bounds", "batch_bytes", "least"),
    [
        ([], 0, NO_BOUND),
        ([1000], 0, NO_BOUND),
        ([2000], 0, NO_BOUND),
        ([300], 0, 300),
        ([300, 200, 400], 0, 200),
        ([0], 0, 1),
        ([300], 400, 400),
        ([300], 4000, NO_BOUND),
    ],
)
def test_the_least_bound_holds_and_is_at_least_a_batch(
    bounds: list[int], batch_bytes: int, least: int
) -> None:
    one = item(batch_bytes=batch_bytes)
    plan = FetchPlan()
    for bound in bounds:
        plan.bound(one, bound)
    assert one.bound == least
