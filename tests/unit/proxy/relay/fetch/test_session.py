"""FetchSession: what the relay tells the broker of a client's session.

tests/property/test_fetch_sessions.py compares random sessions with models of a broker and of a client.
"""

import pytest

from tests.support.stories.fetching import COLD, HOT
from tests.support.stories.session_side import CONSUMER, FOLLOWER, Side, entry, incremental, told


@pytest.mark.parametrize("replica_id", [CONSUMER, FOLLOWER])
def test_only_changes_are_told(replica_id: int) -> None:
    side = Side(replica_id)
    both = (entry(HOT, 0), entry(COLD, 0))
    assert side.next(incremental(*both)) == told(*both)
    assert side.next() == told()
    moved = entry(HOT, 0, offset=5)
    assert side.next(incremental(moved)) == told(moved)
    assert side.session.size == 2


def test_an_omitted_partition_is_forgotten_and_comes_back_as_the_client_had_it_last() -> None:
    side = Side()
    hot, cold = entry(HOT, 0), entry(COLD, 0)
    side.next(incremental(hot, cold))
    side.quota.omit(2.0, 0)
    assert side.next() == told(forgotten=[(HOT, 0)])
    moved = entry(HOT, 0, offset=5)
    assert side.next(incremental(moved), at=1.0) == told()
    assert side.next(at=2.0) == told(moved)


def test_a_partition_that_the_client_forgets_is_forgotten_only_where_the_broker_has_it() -> None:
    side = Side()
    side.quota.omit(2.0, 1)
    side.next(incremental(entry(HOT, 0), entry(HOT, 1)))
    gone = [(HOT, 0), (HOT, 1)]
    assert side.next(incremental(entry(COLD, 0), forgotten=gone)) == told(
        entry(COLD, 0), forgotten=[(HOT, 0)]
    )
    assert side.session.size == 1


@pytest.mark.parametrize("replica_id", [CONSUMER, FOLLOWER])
@pytest.mark.parametrize("most", [1, 100])
def test_a_bound_lowers_the_bytes_of_a_partition_until_it_is_lifted(most: int, replica_id: int) -> None:
    side = Side(replica_id)
    side.quota.bounds[0] = most
    assert side.next(incremental(entry(HOT, 0))) == told(entry(HOT, 0, most=most))
    assert side.next() == told()
    del side.quota.bounds[0]
    assert side.next() == told(entry(HOT, 0))


@pytest.mark.parametrize("replica_id", [CONSUMER, FOLLOWER])
def test_a_full_request_has_what_is_not_omitted(replica_id: int) -> None:
    side = Side(replica_id)
    both = (entry(HOT, 0), entry(COLD, 0))
    assert side.full(*both) == (told(*both), 0)
    side.session.marks((HOT.encode(), 0)).tell(70, 70, 0)
    side.quota.omit(2.0, 0)
    assert side.full(*both) == (told(entry(COLD, 0)), 1)
    assert side.full(entry(HOT, 0), at=2.0) == (told(*both), 0)


@pytest.mark.parametrize("replica_id", [CONSUMER, FOLLOWER])
def test_a_partition_that_no_quota_omits_any_more_comes_back(replica_id: int) -> None:
    side = Side(replica_id)
    hot = entry(HOT, 0)
    side.next(incremental(hot, entry(COLD, 0)))
    side.session.marks((HOT.encode(), 0)).tell(70, 70, 0)
    side.quota.omit(2.0, 0)
    assert side.next() == told(forgotten=[(HOT, 0)])
    side.quota.topics.clear()
    side.configure()
    assert side.next(at=1.0) == told(hot)
    assert side.next(at=1.0) == told()
