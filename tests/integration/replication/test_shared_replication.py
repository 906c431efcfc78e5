"""A follower fetches from its leaders through two proxies, which hold its throttle together."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.kafka.fill import fill
from tests.support.kafka.reassignment import Meters, Reassignment, equal
from tests.support.kafka.replicated import Replicated
from tests.support.kafka.replication_throttles import even, throttled_bytes
from tests.support.kafka.topics import leaders, make_topic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timed]
RATE: Final = 4 << 20
MEGABYTES: Final = 40
MOVED: Final = "shared-move"
TO: Final = [(2,)] * 4
SHARING: Final = {"sharing": {"topic": "__quota_proxy_shares"}}


def test_a_followers_throttle_holds_over_two_proxies(replicated: Replicated, tmp_path: Path) -> None:
    """Broker 2 fetches from broker 1 through one proxy, and from broker 4 through the other."""
    cluster = replicated
    with cluster.proxy("one", **SHARING) as one, cluster.second_proxy("other", **SHARING) as other:
        for proxy in (one, other):
            wait_until(lambda proxy=proxy: proxy.metric("quota_proxy_instances") == 2, "both proxies")
        make_topic(cluster.kafka, MOVED, on=[(1,), (4,), (1,), (4,)])
        fill(cluster.kafka.bootstrap, MOVED, MEGABYTES)
        reassignment = Reassignment(cluster.kafka, one.bootstrap, tmp_path, MOVED, on=TO)
        with Meters(one, 2, more=[other]) as [meter]:
            reassignment.execute(RATE)
            wait_until(lambda: set(leaders(cluster.kafka, MOVED).values()) == {2}, "the move's end", 60)
        of_each = [throttled_bytes(proxy, "follower", "2") for proxy in (one, other)]
        assert min(of_each) > 0.2 * sum(of_each), "a part of the move went through each"
        even(meter.by_second()[1:], RATE, meter.pauses)
        reassignment.verify()
        assert equal(cluster.kafka, MOVED, TO)
