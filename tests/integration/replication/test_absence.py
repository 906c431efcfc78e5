"""Followers that were away: whether they are throttled depends on the ISR, and not on what metadata shows.

The proxy is suspended while a follower falls behind. So the last metadata that it has is from before the
follower's absence, and the follower's first fetch arrives as soon as the proxy continues.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from confluent_kafka.admin import ResourceType

from tests.support.kafka.fill import fill
from tests.support.kafka.reassignment import equal
from tests.support.kafka.replicated import Replicated
from tests.support.kafka.replication_throttles import set_brokers, set_configs, throttled_bytes
from tests.support.kafka.topics import make_topic
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timed]
MEBIBYTES: Final = 10
SIZE: Final = MEBIBYTES << 20
RATE: Final = 2 << 20
FOLLOWER: Final = 3


@pytest.fixture(scope="module")
def proxy(replicated: Replicated) -> Iterator[ProxyProcess]:
    """The proxy through which all brokers but the fourth are fetched from."""
    with replicated.proxy() as proxy, replicated.second_proxy():
        yield proxy


@contextmanager
def suspended(proxy: ProxyProcess) -> Iterator[None]:
    """Suspend the proxy, so that no follower fetches."""
    os.kill(proxy.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(proxy.process.pid, signal.SIGCONT)


def fall_behind(cluster: Replicated, topic: str) -> None:
    """Produce what the follower then lacks."""
    fill(cluster.kafka.bootstrap, topic, MEBIBYTES, acks=1, enable_idempotence=False)


def set_rates(proxy: ProxyProcess, rate: int | None) -> None:
    """Set both rates of every broker."""
    value = None if rate is None else str(rate)
    set_brokers(proxy, leader_replication_throttled_rate=value, follower_replication_throttled_rate=value)


def test_a_broker_that_is_killed_and_soon_starts_again_is_throttled(
    replicated: Replicated, proxy: ProxyProcess
) -> None:
    """It has left the ISR, but the proxy has only metadata from before that. One topic is throttled on the
    follower's side, the other one, from another broker, on the leader's side.
    """
    cluster = replicated
    leaders = {"follower": 1, "leader": 2}
    throttled = {"follower": FOLLOWER, "leader": leaders["leader"]}
    on = {side: [(leader, FOLLOWER)] * 4 for side, leader in leaders.items()}
    for side in leaders:
        make_topic(cluster.kafka, f"killed-{side}", on=on[side])
        cluster.wait_in_sync(f"killed-{side}", on[side])
    set_rates(proxy, RATE)
    for side in leaders:
        replicas = {f"{side}_replication_throttled_replicas": "*"}
        set_configs(proxy, ResourceType.TOPIC, f"killed-{side}", **replicas)

    def moved() -> dict[str, float]:
        return {side: throttled_bytes(proxy, side, str(broker)) for side, broker in throttled.items()}

    before = moved()
    with suspended(proxy):
        cluster.kafka.kill(FOLLOWER)
        for side in leaders:
            fall_behind(cluster, f"killed-{side}")
        cluster.kafka.start(FOLLOWER)
        for side, leader in leaders.items():
            cluster.wait_in_sync(f"killed-{side}", [(leader,)] * 4)
    began = time.monotonic()
    seconds: dict[str, float] = {}

    def all_caught_up() -> bool:
        at = time.monotonic()
        for side, size in moved().items():
            if size >= before[side] + SIZE:
                seconds.setdefault(side, at - began)
        return len(seconds) == len(leaders)

    wait_until(all_caught_up, "the follower to catch up")
    set_rates(proxy, None)
    # One second's worth had been saved up.
    assert min(seconds.values()) > SIZE / RATE - 1.5, seconds
    for side in leaders:
        cluster.wait_in_sync(f"killed-{side}", on[side])
        wait_until(lambda side=side: equal(cluster.kafka, f"killed-{side}", on[side]), "equal replicas")


def test_a_follower_that_is_behind_in_the_isr_is_not_throttled(
    replicated: Replicated, proxy: ProxyProcess
) -> None:
    """The high watermark, and so each Produce request with acks=all, waits for it."""
    cluster = replicated
    on = [(1, FOLLOWER)] * 4
    make_topic(cluster.kafka, "behind", on=on)
    cluster.wait_in_sync("behind", on)
    set_brokers(proxy, leader_replication_throttled="true", follower_replication_throttled="true")
    set_rates(proxy, 1024)
    before = throttled_bytes(proxy, "follower", str(FOLLOWER))
    with suspended(proxy):
        fall_behind(cluster, "behind")
    cluster.wait_in_sync("behind", on)
    # At the rate of the throttle, that would take hours.
    caught_up = before + SIZE
    wait_until(lambda: throttled_bytes(proxy, "follower", str(FOLLOWER)) >= caught_up, "it to catch up")
    set_brokers(proxy, leader_replication_throttled=None, follower_replication_throttled=None)
    set_rates(proxy, None)
    wait_until(lambda: equal(cluster.kafka, "behind", on), "equal replicas")
