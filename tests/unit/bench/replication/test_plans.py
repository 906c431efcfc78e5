import pytest

from bench.replication.plans import Follower


@pytest.mark.parametrize("throttled", [0, 30])
def test_a_fetch_passes_while_replicas_wait(throttled: int) -> None:
    """Follower raises if the relay does not forward it, or if another number of replicas waits."""
    follower = Follower(throttled)
    for epoch in range(2, 5):
        follower.fetch(epoch)
    assert follower.number == 5
