"""A connection may have a few unknown topic ids requested by id; then the names of all topics are."""

from proxy.relay.id_budget import BUDGET_SECONDS, IDS_AT_MOST, IdBudget
from proxy.wire.topic_names import ASKED_AT_MOST, TopicNames

KNOWN = bytes([7] * 16)


class Names(TopicNames):
    def look_up(self, topic_id):
        return "orders" if topic_id == KNOWN else ""


def ids(first, number=IDS_AT_MOST):
    return [(first + each).to_bytes(16, "big") for each in range(number)]


def test_a_known_name_costs_nothing():
    names = Names()
    budget = IdBudget(names)
    assert {budget.name(KNOWN) for _ in range(2 * IDS_AT_MOST)} == {"orders"}
    assert not names.any_wanted


def test_ids_beyond_the_budget_make_the_names_of_all_topics_wanted():
    names = Names()
    budget = IdBudget(names)
    budget.start(1.0)
    for topic_id in ids(0) * 2:
        assert budget.name(topic_id) == ""
    assert (names.wanted, names.all_wanted) == (set(ids(0)), False)
    budget.name(ids(1000)[0])
    assert (names.wanted, names.all_wanted) == (set(ids(0)), True)


def test_the_budget_is_per_second():
    names = Names()
    budget = IdBudget(names)
    for now, wanted in ((1.0, 1), (1.0 + BUDGET_SECONDS / 2, 1), (1.0 + BUDGET_SECONDS, 2)):
        budget.start(now)
        for topic_id in ids(int(now * 1000)):
            budget.name(topic_id)
        assert len(names.wanted) == wanted * IDS_AT_MOST


def test_one_connection_leaves_requests_to_others():
    names = Names()
    hostile, other = IdBudget(names), IdBudget(names)
    for topic_id in ids(0, 10 * ASKED_AT_MOST):
        hostile.name(topic_id)
    other.name(ids(1 << 20)[0])
    assert ids(1 << 20)[0] in names.wanted
