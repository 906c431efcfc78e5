import pytest

from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan
from proxy.quota.kinds.replication.grants import Grants
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import FOLLOWER, LEADER, Throttle
from proxy.quota.limits.limits import Limits
from proxy.wire.fetch.rewrite import Watermarks
from proxy.wire.views import Item

RATE = 1000.0


class Fetch:
    """A fetch of replicas with these sizes of batches, throttled on both sides."""

    def __init__(self, *batch_bytes: int) -> None:
        self.throttles = [Throttle(role, node_id) for role, node_id in ((LEADER, 1), (FOLLOWER, 2))]
        for throttle in self.throttles:
            throttle.configure(RATE, Limits({}), 0.0)
        self.items = [self.item(number, size) for number, size in enumerate(batch_bytes)]
        self.plan = FollowerPlan(self.items, [], None)
        self.grants = Grants(0.0)

    def item(self, number: int, batch_bytes: int) -> FollowerItem:
        item = FollowerItem("t", number, 2, Watermarks())
        item.max_bytes = 700
        replica = Replica((2, "t", number), 0.0)
        replica.throttles, replica.batch_bytes = self.throttles, batch_bytes
        replica.high_watermark = 100
        item.state = replica
        return item

    def left(self) -> list[float]:
        return [throttle.allowance(0.0) for throttle in self.throttles]


def test_grants_are_whole_batches_within_the_clients_own_bound_and_are_reserved() -> None:
    fetch = Fetch(100, 0)
    fetch.grants.add(fetch.plan, fetch.items[0], 250.0, 0.0)
    fetch.grants.add(fetch.plan, fetch.items[1], 900.0, 0.0)
    assert [replica.granted for replica in fetch.grants.replicas] == [200, 700]
    assert [item.bound for item in fetch.items] == [200, 700]
    assert fetch.left() == [100.0, 100.0]
    fetch.grants.release(0.0)
    assert fetch.left() == [RATE, RATE]


@pytest.mark.parametrize(("size", "batch_bytes"), [(0, 400), (200, 100)])
def test_a_replica_that_lacks_messages_and_gets_none_is_granted_more_next_time(
    size: int, batch_bytes: int
) -> None:
    fetch = Fetch(100)
    fetch.grants.add(fetch.plan, fetch.items[0], 200.0, 0.0)
    fetch.grants.learn([Item("t", b"", 0, size)])
    [replica] = fetch.grants.replicas
    assert replica.batch_bytes == batch_bytes
    fetch.grants.end()
    assert replica.granted == 0
