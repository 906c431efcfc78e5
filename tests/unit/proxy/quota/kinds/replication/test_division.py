"""Which replicas get bytes of one fetch; test_kind.py has whole reassignments, tests/property random ones."""

from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan
from proxy.quota.kinds.replication.division import PIECE_BYTES, Division
from proxy.quota.kinds.replication.fetch_budget import FetchBudget
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import LEADER, Throttle
from proxy.quota.kinds.replication.waiter import Waiter
from proxy.quota.kinds.replication.waiting_replicas import WaitingReplicas
from proxy.quota.limits.limits import Limits
from proxy.wire.fetch.rewrite import Watermarks

RATE = 8.0 * PIECE_BYTES
NOW = 10.0


class Session:
    """The session of a follower, whose replicas wait in this order; True for one that has fetched nothing."""

    def __init__(self, *new: bool, tokens: float = RATE) -> None:
        self.throttle = Throttle(LEADER, 1)
        self.throttle.configure(RATE, Limits({}), NOW)
        self.throttle.record(int(RATE - tokens), False, NOW)
        throttles = [self.throttle]
        self.session = WaitingReplicas()
        self.items = []
        for number, waits_for_start in enumerate(new):
            item = FollowerItem("t", number, 2, Watermarks())
            item.max_bytes = 1 << 30
            replica = Replica((2, "t", number), NOW)
            replica.throttles = throttles
            item.state = replica
            self.items.append(item)
            self.session.wait(item, throttles, waits_for_start)
        self.waiter = Waiter(0.0)

    def divide(self, ahead: int = 0) -> list[tuple[int, int]]:
        """The partitions that get bytes, with their bytes."""
        self.plan = FollowerPlan(self.items, [], None)
        budget = FetchBudget({self.throttle: ahead}, NOW)
        grants = Division(self.plan, self.session, self.waiter, budget, NOW).divide()
        return [(replica.partition, replica.granted) for replica in grants.replicas]


def test_replicas_get_equal_parts_in_their_order() -> None:
    session = Session(False, False, False, False)
    assert session.divide() == [(number, 2 * PIECE_BYTES) for number in range(4)]
    assert (session.session.size, list(session.session.again)) == (0, session.items)
    assert (session.waiter.served_at, session.waiter.throttles) == (NOW, [])


def test_pieces_are_large_enough_and_the_others_wait() -> None:
    session = Session(*[False] * 10, tokens=2.5 * PIECE_BYTES)
    assert session.divide() == [(0, PIECE_BYTES), (1, PIECE_BYTES)]
    assert session.waiter.throttles == [session.throttle]
    assert session.plan.ask_again_at == session.waiter.ready_at > NOW
    assert [queue.lacking for queue in session.session.queues] == [[session.throttle]]


def test_the_first_that_starts_goes_before_all_others() -> None:
    session = Session(False, False, True, True)
    assert [partition for partition, _ in session.divide()] == [2, 0, 1]
    assert session.waiter.starting
    assert session.plan.ask_again_at == NOW, "the next one may start with the next fetch"


def test_no_replica_starts_while_another_one_does() -> None:
    session = Session(False, True)
    session.waiter.start(NOW - 0.1)
    assert session.divide() == [(0, 8 * PIECE_BYTES)], "it need not divide them"
    assert session.session.size == 1


def test_without_bytes_nobody_gets_any() -> None:
    session = Session(False, True, tokens=0.0)
    assert session.divide() == []
    assert (session.waiter.served_at, session.waiter.throttles) == (0.0, [session.throttle])
    assert session.waiter.lacked == {session.throttle: NOW}
