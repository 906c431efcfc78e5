"""The items of messages that are done with."""

import gc
import sys

import pytest

from proxy.wire.cursor import NO_ID
from proxy.wire.spare_items import ITEMS_AT_MOST, LISTS_AT_MOST, SpareItems, SpareList, SpareTable
from proxy.wire.views import NO_ITEMS, Found, ResponseView


def read(
    spare: SpareItems,
    partitions: tuple[int, ...] | range,
    topic: str = "t",
    topic_id: bytes = NO_ID,
    head: bytes = b"",
    error_code: int = 0,
) -> ResponseView:
    """A message with these partitions, which has been read."""
    view = ResponseView(12, True, 100, want_items=True)
    spare.lend(view)
    for partition in partitions:
        view.keep(topic, topic_id, partition, partition * 10, head, error_code)
    spare.settle(view)
    return view


def fields(view: ResponseView) -> list[tuple[str, bytes, int, int, bytes, int]]:
    return [
        (item.topic, item.topic_id, item.partition, item.size, item.head, item.error_code)
        for item in view.items
    ]


@pytest.mark.parametrize("later", [(5, 6, 7), (5,), (5, 6, 7, 8, 9), ()])
def test_a_message_has_its_own_items_whatever_the_one_before_had(later: tuple[int, ...]) -> None:
    spare = SpareItems(SpareTable())
    spare.take_back(read(spare, (1, 2, 3), head=b"head", error_code=6))
    again = read(spare, later, topic="other", topic_id=b"i" * 16)
    assert fields(again) == [("other", b"i" * 16, number, number * 10, b"", 0) for number in later]


def test_items_that_are_in_use_are_not_lent() -> None:
    spare = SpareItems(SpareTable())
    first = read(spare, (1, 2))
    before = fields(first)
    read(spare, (3, 4))
    assert fields(first) == before


def test_the_items_of_a_message_that_is_done_with_are_used_again() -> None:
    spare = SpareItems(SpareTable())
    first = read(spare, (1, 2))
    items = list(first.items)
    spare.take_back(first)
    assert first.items is NO_ITEMS
    assert all(made is item for made, item in zip(read(spare, (1, 2)).items, items, strict=True))


def test_a_message_without_items_leaves_them_to_the_next() -> None:
    spare = SpareItems(SpareTable())
    first = read(spare, (1, 2))
    items = list(first.items)
    spare.take_back(first)
    assert read(spare, ()).items is NO_ITEMS
    assert read(spare, (1,)).items[0] is items[0]


def test_a_view_that_wants_no_items_gets_none() -> None:
    spare = SpareItems(SpareTable())
    spare.take_back(read(spare, (1, 2)))
    view = ResponseView(12, True, 100, want_items=False)
    spare.lend(view)
    assert view.items is NO_ITEMS


@pytest.mark.parametrize(
    ("topic", "topic_id", "partition", "stays"),
    [("t", NO_ID, 1, True), ("t", NO_ID, 2, False), ("u", NO_ID, 1, False), ("", b"i" * 16, 1, False)],
)
def test_a_look_up_stays_while_the_partition_is_the_same(
    topic: str, topic_id: bytes, partition: int, stays: bool
) -> None:
    spare = SpareItems(SpareTable())
    first = read(spare, (1,))
    found = first.items[0].found = Found()
    spare.take_back(first)
    assert (read(spare, (partition,), topic, topic_id).items[0].found is found) == stays


def test_a_look_up_of_a_topic_with_an_id_stays_although_its_name_is_not_known_at_first() -> None:
    spare, topic_id = SpareItems(SpareTable()), b"i" * 16
    first = read(spare, (1,), "", topic_id)
    first.items[0].topic = "name"
    found = first.items[0].found = Found()
    spare.take_back(first)
    again = read(spare, (1,), "", topic_id)
    assert (again.items[0].topic, again.items[0].found) == ("", found)


def test_few_and_short_lists_are_kept() -> None:
    spare = SpareItems(SpareTable())
    views = [read(spare, (1,)) for _ in range(LISTS_AT_MOST + 1)]
    kept = {id(view.items[0]) for view in views}
    for view in views:
        spare.take_back(view)
    lent = [read(spare, (1,)) for _ in range(LISTS_AT_MOST + 1)]
    assert len(kept & {id(view.items[0]) for view in lent}) >= LISTS_AT_MOST
    spare = SpareItems(SpareTable())
    long = read(spare, range(ITEMS_AT_MOST + 1))
    item = long.items[0]
    spare.take_back(long)
    assert read(spare, (1,)).items[0] is not item


def test_a_connection_gets_its_own_items_again_whoever_came_between() -> None:
    table = SpareTable()
    connections = [SpareItems(table) for _ in range(LISTS_AT_MOST)]
    items = []
    for number, spare in enumerate(connections):
        view = read(spare, (number,))
        items.append(view.items[0])
        spare.take_back(view)
    for _ in range(2):
        for number, spare in enumerate(connections):
            view = read(spare, (number,))
            assert view.items == [items[number]]
            spare.take_back(view)


def test_several_messages_of_a_connection_get_their_own_items_again() -> None:
    spare = SpareItems(SpareTable())
    items = set()
    for _ in range(3):
        views = [read(spare, (number,)) for number in range(5)]
        items |= {id(view.items[0]) for view in views}
        for view in views:
            spare.take_back(view)
    assert len(items) == 5


def test_a_further_connection_takes_the_items_that_have_been_kept_for_the_longest_time() -> None:
    table = SpareTable()
    connections = [SpareItems(table) for _ in range(LISTS_AT_MOST + 1)]
    items = []
    for number, spare in enumerate(connections):
        view = read(spare, (number,))
        items.append(view.items[0])
        spare.take_back(view)
    assert items[-1] is items[0], "the table was full"
    for number in (2, 1):
        assert read(connections[number], (number,)).items == [items[number]], "they have theirs"
    again = read(connections[0], (0,))
    [item] = again.items
    assert item not in items, "the next to leave are those of the second connection, which uses them"
    connections[0].take_back(again)
    assert read(connections[0], (0,)).items == [item]


def test_a_connection_that_others_follow_has_no_lists() -> None:
    table = SpareTable()
    idle = SpareItems(table)
    views = [read(idle, (number,)) for number in range(3)]
    for view in views[:2]:
        idle.take_back(view)
    read(idle, (0,))
    others = [SpareItems(table) for _ in range(LISTS_AT_MOST)]
    for number, spare in enumerate(others):
        spare.take_back(read(spare, (number,)))
    assert not any(isinstance(each, SpareList) for each in gc.get_referents(idle))
    item = views[2].items[0]
    idle.take_back(views[2])
    assert read(idle, (2,)).items == [item], "it gets a list again"


def test_an_empty_list_keeps_its_place() -> None:
    """Whatever is lent and taken back, no more lists have items than the table has places."""
    table = SpareTable()
    connections = [SpareItems(table) for _ in range(3 * LISTS_AT_MOST)]
    items = set()
    for at in range(4 * len(connections)):
        spare = connections[at * 7 % len(connections)]
        first, second = read(spare, (1,)), read(spare, (2,))
        items |= {first.items[0], second.items[0]}
        spare.take_back(first)
        spare.take_back(second)
    kept = [item for item in items if sys.getrefcount(item) > 3]
    assert len(kept) <= LISTS_AT_MOST
