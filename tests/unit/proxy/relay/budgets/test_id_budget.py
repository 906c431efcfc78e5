"""A connection may have a few unknown topic ids requested by id; then the names of all topics are."""

from proxy.quota.identity import ANONYMOUS, Identity
from proxy.relay.budgets.id_budget import BUDGET_SECONDS, IDS_AT_MOST, IdBudget, fill_names
from proxy.wire.cursor import NO_ID
from proxy.wire.topic_names import ASKED_AT_MOST, TopicNames
from proxy.wire.views import Item

OF_ONE = 56
"""Ids that one client may have requested; see PART_OF_ONE."""
KNOWN = bytes([7] * 16)
WHO = Identity("alice", "c", "127.0.0.1")


class Names(TopicNames):
    def look_up(self, topic_id: bytes) -> str:
        return "orders" if topic_id == KNOWN else ""


def ids(first: int, number: int = IDS_AT_MOST) -> list[bytes]:
    return [(first + each).to_bytes(16, "big") for each in range(number)]


def test_a_known_name_costs_nothing() -> None:
    names = Names()
    budget = IdBudget(names)
    assert {budget.name(KNOWN, WHO) for _ in range(2 * IDS_AT_MOST)} == {"orders"}
    assert not names.any_wanted


def test_ids_beyond_the_budget_make_the_names_of_all_topics_wanted() -> None:
    names = Names()
    budget = IdBudget(names)
    budget.start(1.0)
    for topic_id in ids(0) * 2:
        assert budget.name(topic_id, WHO) == ""
    assert (names.wanted, names.all_wanted) == (set(ids(0)), False)
    budget.name(ids(1000)[0], WHO)
    assert (names.wanted, names.all_wanted) == (set(ids(0)), True)


def test_the_budget_is_per_second() -> None:
    names = Names()
    budget = IdBudget(names)
    for now, wanted in ((1.0, 1), (1.0 + BUDGET_SECONDS / 2, 1), (1.0 + BUDGET_SECONDS, 2)):
        budget.start(now)
        for topic_id in ids(int(now * 1000)):
            budget.name(topic_id, WHO)
        assert len(names.wanted) == wanted * IDS_AT_MOST


def test_one_connection_leaves_requests_to_others() -> None:
    names = Names()
    hostile, other = IdBudget(names), IdBudget(names)
    for topic_id in ids(0, 10 * ASKED_AT_MOST):
        hostile.name(topic_id, WHO)
    other.name(ids(1 << 20)[0], WHO)
    assert ids(1 << 20)[0] in names.wanted


def ask(names: TopicNames, who: Identity, first: int) -> None:
    """Fifty connections of a client, each with new ids."""
    for connection in range(50):
        budget = IdBudget(names)
        for topic_id in ids(first + connection * IDS_AT_MOST):
            budget.name(topic_id, who)


def test_fifty_connections_of_one_client_leave_requests_to_other_clients() -> None:
    names = TopicNames()
    ask(names, WHO, 0)
    assert len(names.take_wanted()) == OF_ONE
    ask(names, Identity("bob", "c", "127.0.0.1"), 1 << 20)
    assert len(names.take_wanted()) > 0


def test_clients_without_a_principal_are_told_apart_by_their_addresses() -> None:
    names = TopicNames()
    ask(names, Identity(ANONYMOUS, "c", "10.0.0.1"), 0)
    names.take_wanted()
    ask(names, Identity(ANONYMOUS, "d", "10.0.0.1"), 1 << 20)
    assert len(names.take_wanted()) == 0
    ask(names, Identity(ANONYMOUS, "c", "10.0.0.2"), 1 << 21)
    assert len(names.take_wanted()) > 0


def items(topic_ids: list[bytes]) -> list[Item]:
    return [Item("", topic_id, 0, 10) for topic_id in topic_ids]


def test_made_up_ids_in_responses_leave_requests_to_other_clients() -> None:
    """A broker responds to a Fetch of made-up ids with these ids."""
    names = Names()
    found = items([KNOWN, *ids(0, 2 * ASKED_AT_MOST)])
    fill_names(names, found, WHO)
    assert (found[0].topic, len(names.take_wanted())) == ("orders", OF_ONE)
    fill_names(names, items(ids(1 << 20)), Identity("bob", "c", "127.0.0.1"))
    assert names.take_wanted() == set(ids(1 << 20))


def test_names_that_become_known_later_are_given_to_the_items_that_lack_them() -> None:
    found = [Item("payments", ids(1)[0], 0, 10), Item("", KNOWN, 0, 10), Item("", NO_ID, 0, 1)]
    fill_names(Names(), found, WHO)
    assert [item.topic for item in found] == ["payments", "orders", ""]


def test_an_item_with_a_name_tells_that_the_message_has_names() -> None:
    names = Names()
    found = [Item("by-name", NO_ID, 0, 10), Item("", KNOWN, 0, 10)]
    fill_names(names, found, WHO)
    assert found[1].topic == ""
