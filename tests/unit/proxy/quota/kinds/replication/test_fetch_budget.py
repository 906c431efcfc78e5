import pytest

from proxy.quota.kinds.replication.fetch_budget import FetchBudget
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER, Throttle
from proxy.quota.limits.limits import Limits

RATE = 1000.0


def throttle(role: str, tokens: int) -> Throttle:
    """A throttle with so many tokens left of 1000."""
    made = Throttle(role, 1)
    made.configure(RATE, Limits({}), 0.0)
    made.record(int(RATE - tokens), False, 0.0)
    return made


def replica(*throttles: Throttle, batch_bytes: int = 0) -> Replica:
    made = Replica((2, "t", 0), 0.0)
    made.throttles = list(throttles)
    made.batch_bytes = batch_bytes
    return made


def test_the_least_throttle_decides_what_is_left() -> None:
    leader, follower = throttle(LEADER, 800), throttle(FOLLOWER, 300)
    budget = FetchBudget({}, 0.0)
    assert budget.lacking(replica(leader, follower), 0) == []
    assert budget.left == 300


def test_a_step_per_connection_ahead_is_left_to_others() -> None:
    leader = throttle(LEADER, 300)
    budget = FetchBudget({leader: 2}, 0.0)
    assert budget.lacking(replica(leader), 0) == []
    assert budget.left == 300 - 2 * leader.step_bytes


def test_each_replica_needs_a_step_a_least_size_or_a_whole_batch() -> None:
    leader = throttle(LEADER, 100)
    assert leader.step_bytes == 50
    assert FetchBudget({}, 0.0).lacking(replica(leader), 0) == []
    assert FetchBudget({}, 0.0).lacking(replica(leader), 200) == [leader]
    assert FetchBudget({}, 0.0).lacking(replica(leader, batch_bytes=200), 0) == [leader]


def test_an_exhausted_throttle_lacks_bytes_for_smaller_replicas_too() -> None:
    leader, follower = throttle(LEADER, 100), throttle(FOLLOWER, 1000)
    budget = FetchBudget({}, 0.0)
    assert budget.lacking(replica(leader, follower, batch_bytes=200), 0) == [leader]
    assert budget.ready_at == pytest.approx(0.1, abs=1e-4)
    assert budget.lacking(replica(leader, follower), 0) == [leader]
    assert budget.exhausted == {leader: budget.ready_at}
    assert budget.lacking(replica(follower), 0) == []


def test_bytes_to_spare_are_what_connections_that_have_waited_longer_leave() -> None:
    leader, follower = throttle(LEADER, 300), throttle(FOLLOWER, 300)
    budget = FetchBudget({leader: 2}, 0.0)
    assert not budget.has_spare(leader)
    assert budget.has_spare(follower)
