"""Several workers on one host hold one limit, with real producers, while one is killed."""

import os
import signal
import time
from contextlib import ExitStack
from itertools import pairwise
from statistics import fmean

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.integration.sharing.test_sharing import QUOTA, SETTLING, logged
from tests.support.kafka.flood import producing
from tests.support.kafka.rates import check_fives, per_second
from tests.support.kafka.topics import appended
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.process.workers import started
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timed]


def counted(proxy: ProxyProcess) -> float:
    return proxy.metric("quota_proxy_client_bytes_total", direction="in", client_id="workers")


def timed(proxy: ProxyProcess) -> dict[str, float]:
    """The histogram of the brokers' times of Produce requests, by bound."""
    return {
        sample.labels["le"]: sample.value
        for sample in proxy.metrics()["quota_proxy_request_broker_seconds"].samples
        if sample.labels.get("api") == "Produce" and "le" in sample.labels
    }


def test_a_worker_is_killed_while_clients_use_the_whole_limit(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner
) -> None:
    topics = [f"workers-{number}" for number in range(6)]
    logged(kafka, *topics)
    quotas = [{"entity": {"client-id": "workers"}, "producer_byte_rate": QUOTA}]
    proxy = run_proxy(kafka.bootstrap, quotas, settings={"workers": 2})
    assert proxy.metric("quota_proxy_workers") == 2
    with ExitStack() as producers:
        for topic in topics:
            producers.enter_context(producing(proxy, topic, "workers"))
        pauses = producers.enter_context(Pauses())
        began = time.time()
        wait_until(lambda: time.time() > began + 6, "a steady flow", 60)
        shown = [bucket for bucket in proxy.buckets() if bucket["kind"] == "producer_byte_rate"]
        before = counted(proxy)
        os.kill(started(proxy)[0], signal.SIGKILL)
        killed = time.time()
        counts = [before]
        times = [timed(proxy)]

        def counted_for_long() -> bool:
            counts.append(counted(proxy))
            times.append(timed(proxy))
            return time.time() > killed + 7

        wait_until(counted_for_long, "a flow without it", 60)
    pieces = [piece for name in topics for piece in appended(kafka, name)]
    start, seconds = began + SETTLING, int(killed - began - SETTLING + 7)
    check_fives(per_second(pieces, start, seconds), QUOTA, pauses.by_second(start, seconds, time.time))
    after = fmean(per_second(pieces, killed + 3, 4))
    assert after == pytest.approx(QUOTA, rel=0.05 + sum(pauses.by_second(killed + 3, 4, time.time)) / 4)
    assert len(shown) == 1
    assert shown[0]["share"] == pytest.approx(QUOTA, rel=0.05)
    assert before > 0
    assert counts == sorted(counts)
    for one, other in pairwise(times):
        assert one.keys() <= other.keys()
        assert all(other[bucket] >= count for bucket, count in one.items())
    assert times[-1]["+Inf"] > times[0]["+Inf"] > 0
    assert len(started(proxy)) == 3
    assert proxy.stop() == 0
