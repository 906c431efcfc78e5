"""ConsumerFetchSession: what is special about a consumer's session."""

from proxy.quota.fetch.consumer_plan import ConsumerItem
from proxy.quota.measure.fetch_queue import FetchQueue
from tests.support.stories.fetching import COLD, HOT
from tests.support.stories.session_side import Side, entry, incremental, told


def waiting(side: Side, queue: FetchQueue) -> None:
    """Have the only item of the last plan wait in a queue."""
    [item] = side.quota.items
    assert isinstance(item, ConsumerItem)
    ticket = queue.newcomer()
    item.set_ticket(queue, ticket)
    queue.wait(ticket, 10.0)


def test_nothing_is_left_if_every_partition_is_omitted() -> None:
    side = Side()
    side.quota.omit(2.0, 0)
    assert side.next(incremental(entry(HOT, 0))) is None


def test_a_full_request_waits_while_watermarks_of_an_omitted_partition_are_unknown() -> None:
    side = Side()
    side.quota.omit(2.0, 0, 1)
    assert side.full(entry(HOT, 0), entry(HOT, 1), entry(COLD, 0)) == (None, 0)
    assert side.session.unknown == 2
    for partition in (0, 1):
        side.session.marks((HOT.encode(), partition)).tell(70, 70, 0)
    assert side.full() == (told(entry(COLD, 0)), 1)
    assert side.session.unknown == 0


def test_watermarks_of_partitions_that_no_quota_omits_are_not_kept() -> None:
    side = Side()
    side.next(incremental(entry(HOT, 0), entry(COLD, 0)))
    assert list(side.session.watched) == [HOT.encode()]
    side.quota.topics.clear()
    side.configure()
    side.next()
    assert side.session.watched == {}


def test_each_plan_begins_behind_the_partitions_that_the_last_one_let_in() -> None:
    side = Side()
    side.quota.bounds.update({0: 100, 1: 100})
    side.quota.omit(1.0, 2)
    side.next(incremental(*[entry(HOT, partition) for partition in range(3)]))
    side.next()
    side.next()
    assert side.quota.plans == [[0, 1, 2], [2, 0, 1], [2, 0, 1]]
    assert side.session.planned == 3


def test_places_in_queues_go_to_the_next_session() -> None:
    side = Side()
    queue = FetchQueue()
    side.next(incremental(entry(HOT, 0)))
    waiting(side, queue)
    before, side.session = side.session, side.new_session()
    side.session.update(incremental(entry(HOT, 0)), before)
    before.end()
    assert queue.waiting == 1
    side.session.end()
    assert queue.waiting == 0


def test_a_partition_that_is_not_fetched_or_not_omitted_any_more_gives_up_its_place() -> None:
    side = Side()
    queue = FetchQueue()
    side.next(incremental(entry(HOT, 0)))
    waiting(side, queue)
    side.next(incremental(forgotten=((HOT, 0),)))
    assert queue.waiting == 0
    side.next(incremental(entry(HOT, 0)))
    waiting(side, queue)
    side.quota.topics.clear()
    side.configure()
    side.next()
    assert queue.waiting == 0
