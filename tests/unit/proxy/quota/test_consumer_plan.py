import pytest

from proxy.quota.consumer_plan import ConsumerPlan
from proxy.quota.fetch_plan import FetchItem
from proxy.wire.fetch_rewrite import Watermarks


def items(count: int) -> list[FetchItem]:
    made = [FetchItem("orders", partition, -1, Watermarks()) for partition in range(count)]
    for item in made:
        item.max_bytes = 1000
    return made


# numbers of the items that are bounded and omitted, number up to the last one that got bytes
SERVED = [([], [], 0), ([0], [], 1), ([0, 2], [], 3), ([0, 2], [2], 1), ([3], [0, 1], 4), ([0], [0], 0)]


@pytest.mark.parametrize(("bounded", "omitted", "served"), SERVED)
def test_the_next_plan_begins_behind_those_that_got_bytes(
    bounded: list[int], omitted: list[int], served: int
) -> None:
    plan = ConsumerPlan(items(4))
    for number in bounded:
        plan.bound(plan.items[number], 100)
    for number in omitted:
        plan.omit(plan.items[number], 1.0)
    assert plan.served() == served
