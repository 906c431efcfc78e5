"""Several proxies hold one limit, with real producers, while one is killed and another one stopped."""

import signal
import time
from contextlib import ExitStack
from statistics import fmean, pstdev

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.flood import producing
from tests.support.kafka.rates import check_fives, per_second, uneven
from tests.support.kafka.topics import appended, describe_topic, drop_topic, make_topic
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timed]
QUOTA = 1_000_000
SETTLING = 3


def sharing_with(
    run_proxy: ProxyRunner, kafka: EmbeddedKafka, topic: str, client_id: str, workers: int = 1
) -> ProxyProcess:
    quotas = [{"entity": {"client-id": client_id}, "producer_byte_rate": QUOTA}]
    return run_proxy(kafka.bootstrap, quotas, settings={"sharing": {"topic": topic}, "workers": workers})


def logged(kafka: EmbeddedKafka, *topics: str) -> None:
    for topic in topics:
        make_topic(kafka, topic, message_timestamp_type="LogAppendTime")


def wait_for_instances(proxy: ProxyProcess, count: int) -> None:
    wait_until(lambda: proxy.metric("quota_proxy_instances") == count, f"{count} processes that share")


def test_two_proxies_let_one_limit_through(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """One of them has two workers, so three processes share the limit."""
    logged(kafka, "shared-a", "shared-b")
    one, other = [sharing_with(run_proxy, kafka, "shares-two", "shared", workers) for workers in (1, 2)]
    wait_for_instances(one, 3)
    wait_for_instances(other, 3)
    seconds = 9
    with producing(one, "shared-a", "shared"), producing(other, "shared-b", "shared"), Pauses() as pauses:
        began = time.time()
        wait_until(lambda: time.time() > began + SETTLING + seconds, "the producers to have sent", 60)
    rates = [
        per_second(appended(kafka, name), began + SETTLING, seconds) for name in ("shared-a", "shared-b")
    ]
    both = [sum(pair) for pair in zip(*rates, strict=True)]
    paused = sum(pauses.by_second(began + SETTLING, seconds, time.time))
    assert fmean(both) == pytest.approx(QUOTA, rel=0.03 + paused / seconds), both
    assert pstdev(both) / fmean(both) <= 0.15 + uneven(paused, seconds), both
    assert fmean(rates[0]) == pytest.approx(QUOTA / 2, rel=0.1)


def test_the_share_of_a_killed_proxy_and_of_a_stopped_one(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    logged(kafka, "killed-a", "killed-b", "killed-c")
    proxies = [sharing_with(run_proxy, kafka, "shares-killed", "killed") for _ in range(3)]
    wait_for_instances(proxies[0], 3)
    a, b, c = proxies
    with (
        producing(a, "killed-a", "killed"),
        producing(b, "killed-b", "killed"),
        producing(c, "killed-c", "killed"),
        Pauses() as pauses,
    ):
        began = time.time()
        wait_until(lambda: time.time() > began + 5, "a steady flow", 60)
        b.process.kill()
        killed = time.time()
        wait_for_instances(a, 2)
        wait_until(lambda: time.time() > killed + 8, "a flow without it", 60)
        c.process.send_signal(signal.SIGSTOP)
        stopped = time.time()
        wait_until(lambda: time.time() > stopped + 10, "a flow past the stopped one", 60)
        c.process.send_signal(signal.SIGCONT)
        resumed = time.time()
        wait_until(lambda: time.time() > resumed + 5, "a flow with all", 60)
    pieces = [piece for name in ("killed-a", "killed-b", "killed-c") for piece in appended(kafka, name)]
    for start in (killed + 3, stopped + 3):
        near = 0.05 + sum(pauses.by_second(start, 5, time.time)) / 5
        assert fmean(per_second(pieces, start, 5)) == pytest.approx(QUOTA, rel=near)
    for start, seconds in (
        (resumed, 5),
        (began + SETTLING, int(resumed - began - SETTLING + 5)),
    ):
        check_fives(per_second(pieces, start, seconds), QUOTA, pauses.by_second(start, seconds, time.time))


def test_three_proxies_hold_the_limit_while_their_topic_is_deleted(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    names = ("deleted-a", "deleted-b", "deleted-c")
    logged(kafka, *names)
    proxies = [sharing_with(run_proxy, kafka, "shares-deleted", "deleted") for _ in range(3)]
    for proxy in proxies:
        wait_for_instances(proxy, 3)
    first_id = describe_topic(kafka.port(1), "shares-deleted").topic_id
    with ExitStack() as stack:
        for proxy, name in zip(proxies, names, strict=True):
            stack.enter_context(producing(proxy, name, "deleted"))
        pauses = stack.enter_context(Pauses())
        began = time.time()
        wait_until(lambda: time.time() > began + 6, "a steady flow", 60)
        drop_topic(kafka, "shares-deleted")
        wait_until(
            lambda: describe_topic(kafka.port(1), "shares-deleted").topic_id not in {first_id, None},
            "a new topic",
            60,
        )
        for proxy in proxies:
            wait_until(
                lambda p=proxy: p.metric("quota_proxy_sharing_degraded") == 0, "an end of the degradation"
            )
            wait_for_instances(proxy, 3)
        joined = time.time()
        wait_until(lambda: time.time() > joined + 6, "a flow with the new topic", 60)
    pieces = [piece for name in names for piece in appended(kafka, name)]
    start, seconds = began + SETTLING, int(joined + 6 - began - SETTLING)
    whole, paused = per_second(pieces, start, seconds), pauses.by_second(start, seconds, time.time)
    check_fives(whole, QUOTA, paused)
    assert fmean(whole[-5:]) == pytest.approx(QUOTA, rel=0.05 + sum(paused[-6:]) / 5)
