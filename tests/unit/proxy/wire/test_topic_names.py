"""Names of topics by their ids."""

import pytest

from proxy.wire.cursor import NO_ID
from proxy.wire.topic_names import ASKED_AT_MOST, NAMES_AT_MOST, TopicNames
from proxy.wire.views import Item

ID = bytes(15) + b"\x01"
OTHER = bytes(15) + b"\x02"
ALICE, BOB = ("alice", ""), ("bob", "")


class Known(TopicNames):
    def __init__(self, names: dict[bytes, str]) -> None:
        super().__init__()
        self.names = names
        self.asked_for: list[bytes] = []

    def look_up(self, topic_id: bytes) -> str:
        self.asked_for.append(topic_id)
        return self.names.get(topic_id, "")


def ids(number: int, first: int = 1) -> list[bytes]:
    return [each.to_bytes(16, "big") for each in range(first, first + number)]


def want(names: TopicNames, topic_ids: list[bytes], client: tuple[str, str] = ALICE) -> None:
    for topic_id in topic_ids:
        names.want(topic_id, client)


def test_items_get_the_names_that_are_known() -> None:
    names = Known({ID: "orders"})
    items = [Item("", ID, 0, 10), Item("", OTHER, 0, 10), Item("", NO_ID, 0, 1), Item("named", ID, 0, 1)]
    names.fill_known(items)
    assert [item.topic for item in items] == ["orders", "", "", "named"]
    assert (names.asked_for, names.any_wanted) == ([ID, OTHER], False)


def test_a_known_name_is_looked_up_once_and_an_unknown_one_each_time() -> None:
    names = Known({ID: "orders"})
    assert [names.known_name(each) for each in (ID, ID, OTHER, OTHER)] == ["orders"] * 2 + [""] * 2
    assert names.asked_for == [ID, OTHER, OTHER]


def test_nobody_knows_any_by_default() -> None:
    names = TopicNames()
    assert names.known_name(ID) == ""
    assert (names.asks, names.hides(ID), names.requests, names.responses) == (False, False, 0, 0)


def test_names_are_not_collected_without_end() -> None:
    every = ids(NAMES_AT_MOST + 1)
    names = Known(dict.fromkeys(every, "t"))
    for topic_id in every:
        names.known_name(topic_id)
    names.asked_for.clear()
    names.known_name(every[0])
    assert names.asked_for == [every[0]]


def test_an_id_that_is_wanted_stays_asked_until_it_may_be_asked_for_again() -> None:
    names = TopicNames()
    want(names, [ID, OTHER])
    assert names.take_wanted() == {ID, OTHER}
    assert (names.asked(ID), names.any_wanted) == (True, False)
    names.ask_again()
    assert not names.asked(ID)


OF_ONE = 56
"""The first client has less than an eighth of the others: x < (500 - x) / 8, for the last time at 55."""


@pytest.mark.parametrize("clients", [1, 2, 20])
def test_made_up_ids_of_some_clients_leave_some_to_the_next(clients: int) -> None:
    names = TopicNames()
    for client in range(clients):
        want(names, ids(ASKED_AT_MOST, first=1 + client * ASKED_AT_MOST), (str(client), ""))
    assert names.all_wanted
    assert OF_ONE <= len(names.take_wanted()) < ASKED_AT_MOST
    want(names, ids(ASKED_AT_MOST, first=1 << 30), BOB)
    assert len(names.take_wanted()) > 0


def test_one_client_has_its_part_of_the_ids_however_often_it_asks() -> None:
    names = TopicNames()
    want(names, ids(10 * ASKED_AT_MOST))
    assert len(names.take_wanted()) == OF_ONE
    names.ask_again()
    want(names, ids(10 * ASKED_AT_MOST))
    assert len(names.take_wanted()) == OF_ONE
