import pytest

from proxy.quota.fetch.consumer_plan import ConsumerItem, ConsumerPlan
from proxy.quota.measure.fetch_queue import FetchQueue
from proxy.wire.fetch.request import NO_BOUND
from proxy.wire.fetch.rewrite import Watermarks


def items(count: int) -> list[ConsumerItem]:
    made = [ConsumerItem("orders", partition, Watermarks()) for partition in range(count)]
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


def test_a_plan_decides_anew_about_each_item() -> None:
    fetched = items(2)
    for item in fetched:
        item.omitted = True
        item.bound = 5
    assert [(item.omitted, item.bound) for item in ConsumerPlan(fetched).items] == [(False, NO_BOUND)] * 2


def test_a_later_fetch_continues_in_the_places_of_an_earlier_one() -> None:
    queue = FetchQueue()
    earlier, later = items(2)
    assert earlier.ticket(queue) is None
    ticket = queue.newcomer()
    earlier.set_ticket(queue, ticket)
    later.take_tickets(earlier)
    assert earlier.ticket(queue) is None
    assert later.ticket(queue) is ticket
    queue.wait(ticket, 10.0)
    earlier.end()
    assert queue.waiting == 1
    later.end()
    assert queue.waiting == 0
