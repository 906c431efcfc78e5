"""Followers of one cluster that fetch through several proxies: the proxies share the replication quotas."""

import statistics
from random import Random

import pytest

from proxy.quota.kinds.replication.throttle import LEADER
from proxy.quota.limits.enforcement import OBSERVE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.sharing.first_parts import SharedFirstParts
from proxy.quota.sharing.local_uses import LocalUses
from proxy.quota.sharing.sharing import REPORT_SECONDS, Sharing
from tests.support.quotas.enforcement import enforcement
from tests.support.sharing.simulation import Log
from tests.support.simulations.move import (
    MEBIBYTE,
    RESPONSE_SECONDS,
    START,
    Copy,
    Fetcher,
    by_second,
    copies,
    quotas,
    run,
    throttled,
)

RATE = 4 * MEBIBYTE
SECONDS = 25
SETTLING = 5
PLENTY = 10**10
NODES = (1, 2, 3)


class Process:
    """A proxy in front of three brokers; its steps are those of LimitSharing."""

    def __init__(self, name: str, log: Log, limits: Limits) -> None:
        self.quotas = quotas(limits, NODES)
        self.wakes_at = START
        self._log = log
        self._sharing = Sharing(name)
        self._first_parts = {node_id: SharedFirstParts(node_id) for node_id in NODES}
        for node_id, quota in self.quotas.items():
            quota.begin_with(self._first_parts[node_id])
        self._uses = LocalUses()
        self._position = 0
        self._report_at = START

    def step(self, now: float, came: list[tuple[float, int]]) -> None:
        self.wakes_at = now + 0.01
        self._log.run(now)
        for at in range(self._position, len(self._log.records)):
            stamp, report = self._log.records[at]
            self._sharing.see(report, at, stamp)
            self._position += 1
        if now >= self._report_at:
            self._report_at = now + REPORT_SECONDS
            self._uses.begin(now)
            for first_parts in self._first_parts.values():
                first_parts.sharing = self._sharing if self._sharing.joined else None
            for node_id, quota in self.quotas.items():
                self._uses.look(node_id, quota.shared_buckets(now), self._sharing, now, divide=True)
            made = self._sharing.report(self._uses.end(), now)
            if made is not None:
                self._log.send(made, now)

    def follower(self, leader: int, follower: int, first: int = 0) -> Fetcher:
        """A follower of 8 partitions of a leader, that fetches through this proxy."""
        return self.fetcher(leader, copies(follower, 8, PLENTY, first=first))

    def fetcher(
        self,
        leader: int,
        copies: list[Copy],
        *,
        response_seconds: float = RESPONSE_SECONDS,
        seconds_to_begin: float = 0.0,
        wakes_at: float = START,
    ) -> Fetcher:
        """A follower that fetches these copies of a leader through this proxy."""
        return Fetcher(
            self.quotas[leader],
            copies[0].item.replica_id,
            copies,
            response_seconds=response_seconds,
            seconds_to_begin=seconds_to_begin,
            wakes_at=wakes_at,
        )


def processes(limits: Limits, count: int = 2) -> list[Process]:
    log = Log(Random(1))
    return [Process(name, log, limits) for name in "abc"[:count]]


def shared(came: list[tuple[float, int]], rate: int = RATE) -> None:
    sizes = by_second(came, SECONDS)[SETTLING:]
    assert statistics.mean(sizes) == pytest.approx(rate, rel=0.05)
    fives = [statistics.mean(sizes[at : at + 5]) for at in range(len(sizes) - 4)]
    assert max(fives) <= 1.05 * rate


def test_followers_of_a_leader_share_its_rate_through_any_proxy() -> None:
    one, other = processes(throttled(RATE))
    shared(run([one, other, one.follower(1, 2), other.follower(1, 3)], SECONDS))


def test_kafkas_window_is_shared_too() -> None:
    """A fetch brings two seconds' worth."""
    one, other = processes(throttled(RATE, algorithm=WINDOW))
    came = run([one, other, one.follower(1, 2), other.follower(1, 3)], SECONDS)
    assert statistics.mean(by_second(came, SECONDS)[SETTLING:]) == pytest.approx(RATE, rel=0.15)


def test_a_followers_rate_is_over_its_leaders_through_any_proxy() -> None:
    one, other = processes(throttled(None, RATE))
    shared(run([one, other, one.follower(1, 3), other.follower(2, 3, first=8)], SECONDS))


def test_one_proxy_uses_what_the_others_do_not_need() -> None:
    one, *others = processes(throttled(RATE, RATE), 3)
    shared(run([one, *others, one.follower(1, 2)], SECONDS))


def test_many_small_replicas_move_through_two_proxies_as_through_one() -> None:
    """Two connections of each follower. Replicas that are about to start need bytes of both sides: where few
    have started lately, the others may start only if there are more bytes than those have used.
    """

    def seconds(count: int) -> float:
        proxies = processes(throttled(RATE, RATE), count)
        fetchers = [
            proxies[number % count].fetcher(
                1,
                copies(2 + number // 2, 500, 10_000, first=500 * number),
                seconds_to_begin=0.001,
                response_seconds=0.06,
            )
            for number in range(4)
        ]
        came = run([*proxies, *fetchers], SECONDS)
        assert sum(size for _, size in came) == 4 * 500 * 10_000
        return came[-1][0]

    assert seconds(2) <= 1.1 * seconds(1)


@pytest.mark.parametrize("elsewhere", [0, 1], ids=["4 and 0", "3 and 1"])
def test_small_replicas_that_start_slowly_find_bytes_to_spare_soon(elsewhere: int) -> None:
    """Most of four connections come to one proxy. Its burst is half of the whole one, and a start reserves
    more of it than the replica has.
    """
    one, other = proxies = processes(throttled(RATE, RATE))
    run(proxies, SETTLING)
    fetchers = [
        (other if number >= 4 - elsewhere else one).fetcher(
            1,
            copies(2 + number // 2, 25, 200_000, first=25 * number),
            seconds_to_begin=0.04,
            response_seconds=0.1,
            wakes_at=START + SETTLING + number / 20,
        )
        for number in range(4)
    ]
    came = run([*proxies, *fetchers], SETTLING + SECONDS)
    began = came[0][0]
    in_four_seconds = sum(size for at, size in came if at < began + 4)
    assert 0.97 * 4 * RATE < in_four_seconds < 1.05 * 5 * RATE


def test_a_slow_follower_of_one_proxy_leaves_the_bytes_to_those_of_another() -> None:
    """It starts three replicas a second, however many bytes there are."""
    one, other = processes(throttled(RATE))
    slow = one.fetcher(1, copies(2, 500, 10_000), seconds_to_begin=0.3)
    sizes = by_second(run([one, other, slow, other.follower(1, 3, first=500)], SECONDS), SECONDS)
    assert statistics.mean(sizes[SETTLING:]) >= 0.9 * RATE


def test_both_sides_of_a_broker_are_shared_and_others_are_not() -> None:
    (one,) = processes(throttled(RATE, RATE), 1)
    run([one, one.follower(1, 2)], 1)
    found = {node_id: one.quotas[node_id].shared_buckets(START + 1) for node_id in NODES}
    assert [[bucket.quota for bucket in found[node_id]] for node_id in NODES] == [
        ["leader.replication.throttled.rate"],
        ["follower.replication.throttled.rate"],
        [],
    ]


def test_connections_that_wait_count_until_they_are_gone() -> None:
    (one,) = processes(throttled(RATE), 1)
    run([one.follower(1, 2), one.follower(1, 3)], 3)
    throttle = one.quotas[1].shared.throttle(LEADER, 1, START)
    one.quotas[1].shared_buckets(START + 3)
    assert throttle.bucket.waiting(START + 3) >= 1
    one.quotas[1].shared_buckets(START + 10)
    assert throttle.bucket.waiting(START + 10) == 0


def test_observed_quotas_are_not_shared() -> None:
    observed = Limits({}, resources=throttled(RATE).resources, settings=enforcement(mode=OBSERVE))
    (one,) = processes(observed, 1)
    one.quotas[1].shared.throttle(LEADER, 1, START)
    assert all(bucket.observed for bucket in one.quotas[1].shared_buckets(START))
