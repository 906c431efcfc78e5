import pytest

from proxy.quota.fetch.follower_plan import FollowerItem
from proxy.quota.kinds.replication.replica import Replica
from proxy.quota.kinds.replication.throttle import LEADER, Throttle
from proxy.wire.fetch.rewrite import Watermarks

KEY = (2, "t", 0)


def item(offset: int, watermark: int = -1, batch: int = 0) -> FollowerItem:
    made = FollowerItem("t", 0, 2, Watermarks())
    made.fetch_offset = offset
    made.marks.high_watermark = watermark
    made.marks.batch_bytes = batch
    return made


def test_lag_is_unknown_before_the_first_high_watermark() -> None:
    replica = Replica(KEY, 0.0)
    replica.see(item(10), 0.0)
    assert replica.lag == 0
    replica.see(item(10, 25), 1.0)
    assert replica.lag == 15
    replica.see(item(30, 25), 2.0)
    assert replica.lag == 0


@pytest.mark.parametrize(("size", "fits"), [(100, 300), (300, 300), (899, 600), (900, 900)])
def test_a_size_is_fit_to_whole_batches(size: int, fits: int) -> None:
    replica = Replica(KEY, 0.0)
    assert replica.fit(size) == size
    replica.batch_bytes = 300
    assert replica.fit(size) == fits


def test_a_fetch_is_bounded_to_at_least_one_byte() -> None:
    assert Replica(KEY, 0.0).fit(0.3) == 1


def test_the_batch_size_is_learned_from_responses() -> None:
    replica = Replica(KEY, 0.0)
    replica.granted = 100
    replica.got(500)
    assert replica.batch_bytes == 500, "one batch came, though it is larger than what was granted"
    replica.granted = 500
    replica.got(400)
    assert replica.batch_bytes == 400, "a batch is no larger than what has come"
    replica.got(500)
    assert replica.batch_bytes == 400
    replica.got_nothing()
    assert replica.batch_bytes == 1000
    replica.see(item(0, 10, 700), 1.0)
    assert replica.batch_bytes == 700, "the leader's own response says so"


def test_an_unbounded_response_does_not_show_the_batch_size() -> None:
    replica = Replica(KEY, 0.0)
    replica.got(500)
    assert replica.batch_bytes == 0


def test_growth_is_measured_over_ten_seconds() -> None:
    replica = Replica(KEY, 0.0)
    replica.see(item(0, 1000), 0.0)
    replica.got(5000)
    replica.see(item(50, 1500), 5.0)
    assert replica.message_bytes == 100.0
    assert replica.inbound == 0.0
    replica.see(item(50, 2000), 10.0)
    assert replica.inbound == 100.0 * 100.0


def test_a_truncated_log_is_measured_again() -> None:
    replica = Replica(KEY, 0.0)
    replica.see(item(0, 1000), 0.0)
    replica.got(5000)
    replica.see(item(50, 2000), 20.0)
    assert replica.inbound > 0.0
    replica.see(item(10, 100), 40.0)
    assert (replica.message_bytes, replica.inbound) == (0.0, 0.0)


def test_each_omission_counts_once() -> None:
    throttle = Throttle(LEADER, 1)
    replica = Replica(KEY, 0.0)
    replica.omit([throttle], 1.0)
    replica.omit([throttle], 1.1)
    assert (throttle.omitted, replica.omitted_since) == (1, 1.0)
    replica.omitted_since = 0.0
    replica.omit([throttle], 2.0)
    assert throttle.omitted == 2
