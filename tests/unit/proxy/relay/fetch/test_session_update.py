"""SessionUpdate: the steps in which a session takes a request."""

import pytest

from proxy.quota.fetch.consumer_plan import ConsumerItem
from proxy.quota.measure.fetch_queue import FetchQueue
from proxy.relay.fetch.session_update import AT_ONCE, SessionUpdate
from proxy.wire.errors import Malformed
from tests.support.stories.fetching import HOT
from tests.support.stories.session_side import Side, entry, incremental

MOST = 3 * AT_ONCE


def test_each_step_takes_some_partitions_and_the_last_one_what_is_forgotten() -> None:
    side = Side()
    side.next(incremental(entry(HOT, MOST)))
    entries = [entry(HOT, number) for number in range(AT_ONCE + 1)]
    update = SessionUpdate(side.session, incremental(*entries, forgotten=((HOT, MOST),)), None, [], MOST)
    assert (update.large, update.size) == (True, AT_ONCE + 1)
    assert not update.step()
    assert side.session.size == 1 + AT_ONCE
    assert update.step()
    assert side.session.size == AT_ONCE + 1


@pytest.mark.parametrize("number", [0, 1, AT_ONCE])
def test_few_partitions_take_one_step(number: int) -> None:
    side = Side()
    update = SessionUpdate(
        side.session, incremental(*[entry(HOT, each) for each in range(number)]), None, [], MOST
    )
    assert not update.large
    assert update.step()
    assert side.session.size == number


def test_a_session_of_too_many_partitions() -> None:
    side = Side()
    side.next(incremental(entry(HOT, AT_ONCE)))
    request = incremental(*[entry(HOT, number) for number in range(AT_ONCE)])
    SessionUpdate(side.session, request, None, [], AT_ONCE + 1).finish()
    with pytest.raises(Malformed, match=f"more than {AT_ONCE} "):
        SessionUpdate(side.session, request, None, [], AT_ONCE).finish()


@pytest.mark.parametrize("ends", [False, True])
def test_places_in_queues_go_to_the_session_with_the_last_step_or_are_given_up(ends: bool) -> None:
    side = Side()
    queue = FetchQueue()
    side.next(incremental(entry(HOT, 0)))
    [item] = side.quota.items
    assert isinstance(item, ConsumerItem)
    ticket = queue.newcomer()
    item.set_ticket(queue, ticket)
    queue.wait(ticket, 10.0)
    before, session = side.session, side.new_session()
    entries = [entry(HOT, number) for number in range(AT_ONCE + 1)]
    update = SessionUpdate(session, incremental(*entries), before, [before], MOST)
    assert not update.step()
    assert queue.waiting == 1
    if ends:
        update.end()
        assert queue.waiting == 0
        return
    assert update.step()
    assert queue.waiting == 1
    session.end()
    assert queue.waiting == 0
