"""Names of topics by their ids."""

from proxy.wire import topic_names
from proxy.wire.cursor import NO_ID
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import Item

ID = bytes(15) + b"\x01"
OTHER = bytes(15) + b"\x02"


class Known(TopicNames):
    def __init__(self, names):
        super().__init__()
        self.names = names
        self.asked = []

    def look_up(self, topic_id):
        self.asked.append(topic_id)
        return self.names.get(topic_id, "")


def test_items_get_their_topics_names():
    names = Known({ID: "orders"})
    items = [Item("", ID, 0, 10), Item("", OTHER, 0, 10), Item("", NO_ID, 0, 1)]
    names.fill(items)
    assert [item.topic for item in items] == ["orders", "", ""]
    assert names.asked == [ID, OTHER]


def test_names_that_become_known_later_are_given_to_the_items_that_lack_them():
    names = Known({ID: "orders"})
    items = [Item("", ID, 0, 10), Item("", OTHER, 0, 10)]
    names.fill(items)
    names.names[OTHER] = "payments"
    names.fill(items)
    assert [item.topic for item in items] == ["orders", "payments"]


def test_a_known_name_is_looked_up_once_and_an_unknown_one_each_time():
    names = Known({ID: "orders"})
    assert [names.name(ID), names.name(ID), names.name(OTHER), names.name(OTHER)] == ["orders"] * 2 + [""] * 2
    assert names.asked == [ID, OTHER, OTHER]


def test_nobody_knows_any_by_default():
    names = TopicNames()
    assert names.name(ID) == ""
    assert (names.asks, names.hides(ID), names.requests, names.responses) == (False, False, 0, 0)


def test_names_are_not_collected_without_end():
    ids = [number.to_bytes(16, "big") for number in range(1, topic_names.KNOWN_AT_MOST + 2)]
    names = Known(dict.fromkeys(ids, "t"))
    for topic_id in ids:
        names.name(topic_id)
    names.asked.clear()
    names.name(ids[0])
    assert names.asked == [ids[0]]


def test_an_unknown_id_is_wanted_once_until_it_may_be_asked_for_again():
    names = TopicNames()
    assert [names.name(ID), names.name(ID), names.name(OTHER)] == [""] * 3
    assert names.take_wanted() == {ID, OTHER}
    names.name(ID)
    assert names.take_wanted() == set()
    names.ask_again()
    names.name(ID)
    assert names.take_wanted() == {ID}


def test_many_made_up_ids_are_not_all_wanted():
    names = TopicNames()
    for number in range(1, topic_names.ASKED_AT_MOST + 500):
        names.name(number.to_bytes(16, "big"))
    assert names.all_wanted
    assert len(names.take_wanted()) == topic_names.ASKED_AT_MOST
    assert not names.any_wanted


def test_an_item_with_a_name_tells_that_the_message_has_names():
    names = Known({ID: "orders"})
    items = [Item("by-name", NO_ID, 0, 10), Item("", ID, 0, 10)]
    names.fill(items)
    assert names.asked == []
