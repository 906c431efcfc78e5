"""Replication through the proxy: throttled replicas move at the throttle's rate, others at their own."""

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    ResourceType,
)
from kio.schema.errors import ErrorCode

from pipeline.cluster.log_dirs import read_cluster
from pipeline.transforms.reassignment import Cluster, Move, plan
from proxy.wire.api_keys import FETCH
from tests.support.kafka.admin_requests import ask
from tests.support.kafka.clients import Confluent
from tests.support.kafka.fill import fill
from tests.support.kafka.load import Load
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.reassignment import Meters, Reassignment, digests, equal
from tests.support.kafka.replicated import Replicated
from tests.support.kafka.replication_throttles import (
    LISTS,
    RATES,
    configs,
    even,
    ms_from_now,
    on_disk,
    row,
    set_brokers,
    set_configs,
    throttled_bytes,
)
from tests.support.kafka.topics import leaders, make_topic
from tests.support.messages.configs import (
    BROKER,
    DELETE,
    SET,
    TOPIC,
    alter_request,
    describe_request,
    described,
    incremental_request,
    results,
)
from tests.support.messages.exchanges import opaque
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
MEBIBYTE = 1 << 20
RATE = 4 * MEBIBYTE
DRAIN_SECONDS = 600
"""limits.drain_seconds: a drain that waits for that long does not end in time."""
FED = "fed"
FED_ON = [(1, 2), (2, 1)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    """Three brokers, which fetch from each other through `proxy`; most moves concern two of them."""
    with Replicated(tmp_path_factory.mktemp("replicated"), brokers=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def proxy(cluster: Replicated) -> Iterator[ProxyProcess]:
    """A proxy, and a topic FED that is in sync on two brokers and has to stay so."""
    with cluster.proxy(limits={"drain_seconds": DRAIN_SECONDS}) as proxy:
        make_topic(cluster.kafka, FED, on=FED_ON, min_insync_replicas=2)
        yield proxy


def cluster_of(bootstrap: str, topic: str, to: list[int]) -> Cluster:
    """The cluster as `reassign` sees it, with this topic alone, all of which moves."""
    found = asyncio.run(read_cluster(bootstrap.split(",")[0]))
    partitions = [each for each in found.partitions if each.topic == topic]
    return Cluster(found.brokers, partitions, [Move(topic, each.partition, to) for each in partitions])


@pytest.mark.timed
def test_replicas_in_sync_are_fed_through_the_proxy(cluster: Replicated, proxy: ProxyProcess) -> None:
    client = Confluent()
    client.send(proxy.bootstrap, FED, 1000)
    assert len(client.read(proxy.bootstrap, FED, 1000)) == 1000
    cluster.wait_in_sync(FED, FED_ON)
    assert proxy.metric("quota_proxy_connections", listener="replication") >= 2
    assert proxy.metric("quota_proxy_requests_total", listener="replication", api="Fetch") > 0
    assert proxy.metric("quota_proxy_unread_fetches_total", listener="replication") == 0
    tenants = {sample.labels["client_id"] for sample in proxy.metrics()["quota_proxy_client_bytes"].samples}
    assert not any("fetcher" in client_id for client_id in tenants), "followers are nobody's tenants"
    # A version that no broker has yet passes too: the broker itself ends the connection.
    with RawClient(cluster.port(1)) as raw:
        raw.send_bytes(opaque(1, FETCH, 99))
        assert raw.ended()
    assert proxy.metric("quota_proxy_unread_fetches_total", listener="replication") == 1
    wait_until(lambda: proxy.log_lines("of versions that this proxy cannot read"), "the log's line")


@pytest.mark.timed
def test_a_move_with_kafkas_tool_keeps_to_its_throttle(
    cluster: Replicated, proxy: ProxyProcess, tmp_path: Path
) -> None:
    """The topic moves while another is produced to, and no broker sees the throttle. The move takes the
    time that `quota-pipeline reassign` plans.
    """
    make_topic(cluster.kafka, "moved", on=[(1,)] * 8)
    make_topic(cluster.kafka, "bystander", on=[(1, 2), (2, 1)], min_insync_replicas=2)
    fill(cluster.kafka.bootstrap, "moved", 32)
    before = digests(cluster.kafka, "moved", 8)
    planned = plan(cluster_of(cluster.kafka.bootstrap, "moved", [2]), RATE)
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "moved", on=[(2,)] * 8)
    sides = (("leader", "1"), ("follower", "2"))
    before_it = {side: throttled_bytes(proxy, side, broker) for side, broker in sides}
    with Load(proxy.bootstrap, "bystander", 2) as load, Meters(proxy, 2) as [meter]:
        load.go_on()
        reassignment.execute(RATE)
        meter.wait(8 * MEBIBYTE)
        load.go_on()
        assert set(LISTS) <= configs(proxy.bootstrap, ResourceType.TOPIC, "moved").keys()
        assert not set(LISTS) & configs(cluster.kafka.bootstrap, ResourceType.TOPIC, "moved").keys()
        assert not set(RATES) & configs(cluster.kafka.bootstrap, ResourceType.BROKER, "2").keys()
        shown = row(proxy, "follower", 2)
        assert shown["limit"] == RATE
        assert shown["replicas_behind"] > 0
        assert shown["lag"] > 0
        assert 0 < shown["since_seconds"] < 60
        assert proxy.metric("quota_proxy_replica_lag", broker="2") > 0
        meter.wait(24 * MEBIBYTE)
        for side, broker in sides:
            at_least = throttled_bytes(proxy, side, broker) - before_it[side]
            rate = proxy.metric(f"quota_proxy_{side}_replication_throttled_rate", broker=broker)
            at_most = throttled_bytes(proxy, side, broker) - before_it[side]
            # Its window began with the first fetch. If the machine is slow, it began up to 12 s ago: a sample
            # of 1 s counts until its last fetch was 11 s ago.
            assert 0.95 * at_least / max(meter.seconds, 12) <= rate <= 1.05 * at_most / min(meter.seconds, 11)
        wait_until(lambda: set(leaders(cluster.kafka, "moved").values()) == {2}, "the move's end", 60)
        load.check()
        seconds = meter.by_second()
    even(seconds[1:], RATE, meter.pauses)
    assert planned.move_seconds is not None
    # The throttle lets a second's bytes through at once when the move begins.
    assert meter.seconds_at_most >= 0.99 * planned.move_seconds - 1
    assert meter.seconds <= 1.15 * planned.move_seconds
    for side, broker in sides:
        moved = throttled_bytes(proxy, side, broker) - before_it[side]
        assert moved == pytest.approx(on_disk(cluster.kafka, "moved", 2), rel=0.05)
        assert proxy.metric("quota_proxy_replication_omitted_partitions_total", broker=broker, role=side) > 0
    assert "is complete" in reassignment.verify()
    assert not set(LISTS) & configs(proxy.bootstrap, ResourceType.TOPIC, "moved").keys()
    assert not set(RATES) & configs(proxy.bootstrap, ResourceType.BROKER, "1").keys()
    cluster.wait_in_sync("moved", [(2,)] * 8)
    assert digests(cluster.kafka, "moved", 8) == before
    assert cluster.in_sync("bystander") == {1, 2}
    wait_until(lambda: proxy.metric("quota_proxy_replica_lag") == 0, "an end of all lag")


@pytest.mark.timed
def test_configs_have_the_responses_of_a_broker(cluster: Replicated, proxy: ProxyProcess) -> None:
    """The same codes and messages for changes, and the same descriptions of what is set."""
    broker, through = cluster.kafka.port(1), proxy.broker_port(1)
    topic, node = (TOPIC, FED), (BROKER, "1")
    lists = ["", "*", "0:1", "0:1,1:2", "99:99", "0:1,", "*,0:1", "0-1", "all", "0:", "-1:1", "0:1:2", "a:b"]
    rates = ["0", "7", str(2**63 - 1), str(2**63), "-1", "1e3", "x", ""]
    entries = [(topic, name, value) for name in LISTS for value in lists]
    entries += [(node, name, value) for name in RATES for value in rates]
    for resource, name, value in entries:
        change = incremental_request([(resource, [(name, SET, value)])])
        show = describe_request([(resource, [name])], documentation=False)
        [theirs], [ours] = results(ask(broker, change)), results(ask(through, change))
        assert ours == theirs
        shown = described(ask(through, show))
        wait_until(
            lambda shown=shown, show=show: described(ask(broker, show)) == shown, f"{name}={value}", 30
        )
    erased = [
        (topic, [(name, DELETE, None) for name in LISTS]),
        (node, [(name, DELETE, None) for name in RATES]),
    ]
    for port in (broker, through):
        ask(port, incremental_request(erased))


@pytest.mark.timed
def test_each_side_alone_of_three_brokers(cluster: Replicated, proxy: ProxyProcess, tmp_path: Path) -> None:
    """Replicas move to a third broker while their partitions are produced to: under a throttle below that
    rate, then under one of the leader's side, and then of the follower's side, which expires.
    """
    on = [(1, 2), (2, 1), (1, 2), (2, 1)]
    make_topic(cluster.kafka, "sides", on=on)
    messages = fill(cluster.kafka.bootstrap, "sides", 60)
    set_configs(proxy, ResourceType.TOPIC, "sides", leader_replication_throttled_replicas="*")
    set_brokers(proxy, leader_replication_throttled_rate="1024")
    moves = [(leader, 3) for leader, _ in on]
    with Load(proxy.bootstrap, "sides", 4, first=messages) as load:
        load.go_on()
        Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "sides", on=moves).execute()
        wait_until(lambda: row(proxy, "leader", 1)["too_low"], "the throttle's being too low")
        too_low = proxy.metric("quota_proxy_replication_throttle_too_low", broker="1", role="leader")
        assert too_low == 1
        wait_until(lambda: proxy.log_lines(r"broker 1 sends .* 1024 B/s"), "it")
        with Meters(proxy, 1, 2, side="leader") as meters:
            set_brokers(proxy, leader_replication_throttled_rate=str(RATE // 2))
            for meter in meters:
                # A fetch that is late at the end of two seconds can be more than a tenth of their bytes.
                meter.wait(13 * MEBIBYTE)
                even(meter.by_second()[1:], RATE // 2, meter.pauses)
        sides = {
            "leader_replication_throttled_replicas": None,
            "follower_replication_throttled_replicas": "*",
        }
        with Meters(proxy, 3) as [meter]:
            set_brokers(proxy, follower_replication_throttled_rate=str(RATE), expires_at_ms=ms_from_now(600))
            set_configs(proxy, ResourceType.TOPIC, "sides", **sides)
            meter.wait(22 * MEBIBYTE)
            even(meter.by_second()[1:], RATE, meter.pauses)
        set_brokers(proxy, leader_replication_throttled_rate=None)
        set_brokers(proxy, follower_replication_throttled_rate=str(RATE), expires_at_ms=ms_from_now(1))
        wait_until(
            lambda: not set(RATES) & configs(proxy.bootstrap, ResourceType.BROKER, "3").keys(), "its end"
        )
        cluster.wait_in_sync("sides", moves)
        load.check()
    wait_until(lambda: equal(cluster.kafka, "sides", moves), "equal replicas")
    set_configs(proxy, ResourceType.TOPIC, "sides", follower_replication_throttled_replicas=None)


@pytest.mark.timed
def test_a_changed_rate_holds_within_two_seconds(
    cluster: Replicated, proxy: ProxyProcess, tmp_path: Path
) -> None:
    """After a cancelled move no throttle is left."""
    make_topic(cluster.kafka, "changed", on=[(1,)] * 4)
    fill(cluster.kafka.bootstrap, "changed", 40)
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "changed", on=[(1, 2)] * 4)
    reassignment.execute(2 * MEBIBYTE)
    with Meters(proxy, 2) as [meter]:
        meter.wait(8 * MEBIBYTE)
        rate = str(6 * MEBIBYTE)
        set_brokers(proxy, leader_replication_throttled_rate=rate, follower_replication_throttled_rate=rate)
        changed_at = time.monotonic()
        slow = meter.by_second()[1:]
        meter.wait(32 * MEBIBYTE)
        fast = meter.by_second(changed_at + 2)
    # Slow enough that there is something left to cancel.
    set_brokers(proxy, leader_replication_throttled_rate="1024")
    even(slow, 2 * MEBIBYTE, meter.pauses)
    even(fast, 6 * MEBIBYTE, meter.pauses)
    assert "cancelled" in reassignment.cancel().lower()
    assert not set(LISTS) & configs(proxy.bootstrap, ResourceType.TOPIC, "changed").keys()
    assert not set(RATES) & configs(proxy.bootstrap, ResourceType.BROKER, "2").keys()


@pytest.mark.timed
def test_a_move_survives_the_proxy(cluster: Replicated, proxy: ProxyProcess, tmp_path: Path) -> None:
    """The proxy is killed during a move."""
    make_topic(cluster.kafka, "survives", on=[(1,)] * 4)
    fill(cluster.kafka.bootstrap, "survives", 24)
    before = digests(cluster.kafka, "survives", 4)
    complaints = cluster.complaints()
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "survives", on=[(2,)] * 4)
    reassignment.execute(RATE)
    with Meters(proxy, 2) as [meter]:
        meter.wait(4 * MEBIBYTE)
    proxy.process.kill()
    proxy.process.wait()
    proxy.start().wait_ready()
    with Meters(proxy, 2) as [meter]:
        wait_until(lambda: set(leaders(cluster.kafka, "survives").values()) == {2}, "the move's end", 60)
        seconds = meter.by_second()
    assert statistics.mean(seconds[1:]) < 1.1 * RATE, seconds
    assert digests(cluster.kafka, "survives", 4) == before
    assert "is complete" in reassignment.verify()
    cluster.wait_in_sync(FED, FED_ON)
    assert cluster.complaints() == complaints


@pytest.mark.timed
def test_a_restarted_proxy_serves_followers_before_it_shares(
    cluster: Replicated, proxy: ProxyProcess
) -> None:
    """The followers of the topic by which proxies share limits fetch through the proxy, which therefore
    cannot read its own reports before it serves followers.
    """
    topic = "fed-again"
    make_topic(cluster.kafka, topic, on=FED_ON, min_insync_replicas=2)
    client = Confluent()
    proxy.stop()
    before = len(proxy.log)
    proxy.start().wait_ready()
    started = proxy.log[before:]
    assert "the others do not know this process" not in started
    assert started.index("replication: port of broker 1 ") < started.index("clients: bootstrap port ")
    client.send(proxy.bootstrap, topic, 100)
    cluster.wait_in_sync(topic, FED_ON)


@pytest.mark.timed
def test_a_move_survives_its_broker(cluster: Replicated, proxy: ProxyProcess, tmp_path: Path) -> None:
    """The broker that gets the replicas is killed during the move, and starts again."""
    make_topic(cluster.kafka, "restarted", on=[(1,)] * 4)
    fill(cluster.kafka.bootstrap, "restarted", 16)
    before = digests(cluster.kafka, "restarted", 4)
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "restarted", on=[(2,)] * 4)
    reassignment.execute(RATE)
    with Meters(proxy, 2) as [meter]:
        meter.wait(6 * MEBIBYTE)
        cluster.kafka.kill(2)
        cluster.kafka.start(2)
        started_at = time.monotonic()
        wait_until(lambda: set(leaders(cluster.kafka, "restarted").values()) == {2}, "the move's end", 60)
        seconds = meter.by_second(started_at)
    assert max(seconds, default=0.0) < 2.2 * RATE, seconds
    assert digests(cluster.kafka, "restarted", 4) == before
    assert "is complete" in reassignment.verify()
    cluster.wait_in_sync(FED, FED_ON)


@pytest.mark.timed
@pytest.mark.parametrize(
    ("before", "after", "side", "broker"),
    [([(1,)], [(1, 2), (1, 3)], "leader", 1), ([(1,), (2,)], [(1, 3), (2, 3)], "follower", 3)],
    ids=["one to two", "two to one"],
)
def test_a_hundred_partitions_move_between_one_broker_and_two(
    before: list[tuple[int, ...]],
    after: list[tuple[int, ...]],
    side: str,
    broker: int,
    cluster: Replicated,
    proxy: ProxyProcess,
    tmp_path: Path,
) -> None:
    """One broker's side has its rate over both others, which fetch or send with two threads each. Produces
    with acks=all go on.
    """
    topic = f"narrow-{side}"
    on, to = ([each[number % len(each)] for number in range(100)] for each in (before, after))
    make_topic(cluster.kafka, topic, on=on)
    make_topic(cluster.kafka, f"{topic}-bystander", on=[(1, 3), (3, 1)], min_insync_replicas=2)
    fill(cluster.kafka.bootstrap, topic, 20)
    rates: dict[str, str | None] = dict.fromkeys((name.replace(".", "_") for name in RATES), str(RATE))
    lists: dict[str, str | None] = dict.fromkeys((name.replace(".", "_") for name in LISTS), "*")
    set_brokers(proxy, num_replica_fetchers="2", **rates)
    set_configs(proxy, ResourceType.TOPIC, topic, **lists)
    reassignment = Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, topic, on=to)
    with Load(proxy.bootstrap, f"{topic}-bystander", 2) as load, Meters(proxy, broker, side=side) as [meter]:
        load.go_on()
        reassignment.execute()
        meter.wait(16 * MEBIBYTE)
        load.go_on()
        seconds = meter.by_second()
        cluster.wait_in_sync(topic, to)
        load.check()
    # A second's worth had been saved up.
    assert 0.85 * len(seconds) * RATE < sum(seconds) < 1.05 * (len(seconds) + 1) * RATE, seconds
    wait_until(lambda: equal(cluster.kafka, topic, to), "equal replicas")
    assert cluster.in_sync(f"{topic}-bystander") == {1, 3}
    set_brokers(proxy, num_replica_fetchers=None, **dict.fromkeys(rates))
    set_configs(proxy, ResourceType.TOPIC, topic, **dict.fromkeys(lists))


@pytest.mark.timed
@pytest.mark.parametrize("side", ["follower", "leader"])
def test_a_broker_that_was_away_is_throttled(
    side: str, cluster: Replicated, proxy: ProxyProcess, tmp_path: Path
) -> None:
    """It goes on as soon as it has left the ISR, where metadata still shows it for a moment."""
    topic = f"away-{side}"
    megabytes = 16
    on = [(1, 3)] * 4
    make_topic(cluster.kafka, topic, on=on)
    cluster.wait_in_sync(topic, on)
    set_brokers(proxy, **{f"{side}_replication_throttled": "true"})
    set_brokers(proxy, **{f"{side}_replication_throttled_rate": str(RATE)})
    with Meters(proxy, 3 if side == "follower" else 1, side=side) as [meter]:
        os.kill(cluster.kafka.pid(3), signal.SIGSTOP)
        try:
            fill(cluster.kafka.bootstrap, topic, megabytes, acks=1, enable_idempotence=False)
            cluster.wait_in_sync(topic, [(1,)] * 4)
        finally:
            began = time.monotonic()
            os.kill(cluster.kafka.pid(3), signal.SIGCONT)
        meter.wait(megabytes * MEBIBYTE)
        seconds = time.monotonic() - began
    set_brokers(proxy, **{f"{side}_replication_throttled": None})
    set_brokers(proxy, **{f"{side}_replication_throttled_rate": None})
    # At first it gets what one fetch brings, and one second's worth that had been saved up.
    assert seconds > megabytes * MEBIBYTE / RATE - 2.2
    cluster.wait_in_sync(topic, on)
    wait_until(lambda: equal(cluster.kafka, topic, on), "equal replicas")


@pytest.mark.timed
def test_a_whole_broker_is_throttled_with_one_switch(
    cluster: Replicated, proxy: ProxyProcess, tmp_path: Path
) -> None:
    """The lists are empty, AlterConfigs sets the switch, and the proxy restarts during the move."""
    make_topic(cluster.kafka, "whole", on=[(1,)] * 4)
    fill(cluster.kafka.bootstrap, "whole", 32)
    lists = dict.fromkeys(LISTS, "")
    switch = {"follower.replication.throttled": "true", RATES[1]: str(RATE)}

    def alter(*resources: tuple[tuple[int, str], dict[str, str]]) -> None:
        responses = results(ask(proxy.broker_port(2), alter_request(resources)))
        assert {code for _, code, _ in responses} == {ErrorCode.none}

    alter(((TOPIC, "whole"), lists), ((BROKER, "2"), switch))
    assert configs(proxy.bootstrap, ResourceType.BROKER, "2").items() >= switch.items()
    assert not switch.keys() & configs(cluster.kafka.bootstrap, ResourceType.BROKER, "2").keys()
    Reassignment(cluster.kafka, proxy.bootstrap, tmp_path, "whole", on=[(1, 2)] * 4).execute()
    with Meters(proxy, 2) as [meter]:
        meter.wait(20 * MEBIBYTE)
        seconds = meter.by_second()
    even(seconds[1:], RATE, meter.pauses)
    complaints = cluster.complaints()
    # So slow that there is something left to move when the proxy is back.
    alter(((BROKER, "2"), {**switch, RATES[1]: str(RATE // 8)}))
    make_topic(cluster.kafka, "in-flight", on=[(1, 2), (2, 1)], min_insync_replicas=2)
    with Load(proxy.bootstrap, "in-flight", 2) as load:
        load.go_on()
        # What is produced with acks=all as it ends is acknowledged while followers can still fetch it.
        assert proxy.stop() == 0
        proxy.start().wait_ready()
        load.go_on()
        load.check()
    with Meters(proxy, 2) as [meter]:
        meter.wait(MEBIBYTE // 2)
    alter(((BROKER, "2"), {}))
    assert not switch.keys() & configs(proxy.bootstrap, ResourceType.BROKER, "2").keys()
    cluster.wait_in_sync("whole", [(1, 2)] * 4)
    assert equal(cluster.kafka, "whole", [(1, 2)] * 4)
    assert cluster.in_sync(FED) == {1, 2}
    assert cluster.complaints() == complaints
