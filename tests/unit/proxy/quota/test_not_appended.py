"""Which items of a Produce request the broker has not appended."""

import pytest

from proxy.quota.not_appended import appended_items, not_appended
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.error_codes import NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED
from proxy.wire.views import UNCHARGED, Item, RequestView, ResponseView

ITEMS = [Item("a", NO_ID, 0, 10), Item("a", NO_ID, 1, 20), Item("", b"b" * 16, 0, 30)]


def request(*, sent: bool) -> RequestView:
    view = RequestView(PRODUCE, 9, 1, "c", 100, flexible=True, want_items=True)
    if sent:
        view.sent = ITEMS
    else:
        view.items = ITEMS
    return view


def response(*error_codes: int) -> ResponseView:
    view = ResponseView(9, True, 50, True)
    view.items = [
        Item(item.topic, item.topic_id, item.partition, 0, b"", error_code)
        for item, error_code in zip(ITEMS, error_codes, strict=True)
    ]
    return view


@pytest.mark.parametrize("sent", [True, False])
def test_items_come_with_the_errors_of_their_partitions(sent: bool) -> None:
    found = not_appended(request(sent=sent), response(TOPIC_AUTHORIZATION_FAILED, 0, NOT_ENOUGH_REPLICAS))
    assert found == [(ITEMS[0], TOPIC_AUTHORIZATION_FAILED), (ITEMS[2], NOT_ENOUGH_REPLICAS)]


def test_without_errors_there_are_none() -> None:
    assert not_appended(request(sent=False), response(0, 0, 0)) == []


def test_a_partition_that_the_response_has_twice_counts_once() -> None:
    answered = response(TOPIC_AUTHORIZATION_FAILED, 0, 0)
    answered.items = [answered.items[0], answered.items[0]]
    assert len(not_appended(request(sent=False), answered)) == 1


def test_each_part_of_a_request_that_has_a_partition_several_times_counts() -> None:
    repeated = request(sent=False)
    repeated.items = [*ITEMS, Item("a", NO_ID, 0, 40)]
    found = not_appended(repeated, response(TOPIC_AUTHORIZATION_FAILED, 0, 0))
    assert [item.size for item, _ in found] == [10, 40]


def test_a_partition_that_was_not_sent_is_skipped() -> None:
    answered = response(0, 0, 0)
    answered.add(Item("c", NO_ID, 0, 0, b"", NOT_ENOUGH_REPLICAS))
    assert not_appended(request(sent=False), answered) == []


@pytest.mark.parametrize("sent", [True, False])
def test_items_that_are_to_be_charged_are_those_in_the_log(sent: bool) -> None:
    asked = request(sent=sent)
    items = [Item("a", NO_ID, partition, partition, b"", UNCHARGED) for partition in range(3)]
    items[0].error_code = 0
    items.append(Item("b", NO_ID, 0, 4, b"", UNCHARGED))
    asked.sent, asked.items = (items, []) if sent else ([], items)
    answered = response(0, 0, 0)
    answered.items = [Item("a", NO_ID, 1, 0, b"", REQUEST_TIMED_OUT), Item("b", NO_ID, 0, 0, b"", -1)]
    found = appended_items(asked, answered)
    assert [(item.topic, item.partition, item.size, item.error_code) for item in found] == [
        ("a", 1, 1, 0),
        ("a", 2, 2, 0),
    ]
