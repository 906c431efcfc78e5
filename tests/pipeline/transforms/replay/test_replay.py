"""Replay: the quotas that were in force give what happened; others, what would have happened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession

from pipeline.inputs.quota_file import Quotas, QuotaSet
from pipeline.schema import REPLAY
from pipeline.transforms.replay import replay as module
from pipeline.transforms.replay.replay import nobody_waits, replay, simulate
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds.client_bytes import PRODUCER_BYTE_RATE
from tests.support.messages.usage_events import make_event, write_lines
from tests.support.simulations.workload import Client, run

Frame = Callable[..., DataFrame]
MB = 1_000_000
EVERYBODY = QuotaEntity("", None)


def quotas(rate: float = MB, **settings: Any) -> QuotaSet:
    return QuotaSet(Quotas(**settings), {EVERYBODY: {PRODUCER_BYTE_RATE: rate}})


def rows(events: list[dict[str, Any]], quotas: QuotaSet) -> Any:
    """One bucket's intervals, as applyInPandas gives them."""
    limit = quotas.clients[EVERYBODY][PRODUCER_BYTE_RATE]
    return pd.DataFrame(
        [
            {**event, "bytes": event["bytes_in"], "bucket_quota": PRODUCER_BYTE_RATE, "limit": limit}
            for event in events
        ]
    )


def throttle_ms(events: list[dict[str, Any]], quotas: QuotaSet) -> int:
    return sum(found[3] for found in simulate(rows(events, quotas), quotas))


CLIENTS = [
    pytest.param(Client("a", 16_000), id="saturated"),
    pytest.param(Client("a", 1_000_000), id="large requests"),
    pytest.param(Client("a", 100_000, connections=5), id="five connections"),
    pytest.param(Client("a", 20_000_000), id="a wait of two intervals"),
    pytest.param(Client("a", 15_000_000, connections=3), id="waits of several intervals"),
    pytest.param(Client("a", 30_000_000, connections=5), id="waits of many intervals"),
    pytest.param(Client("a", 50_000, burst=60, every=5.0), id="bursts"),
    pytest.param(Client("a", 50_000, burst=26, every=2.0), id="small bursts"),
    pytest.param(Client("a", 100_000, burst=100, every=30.0), id="rare bursts"),
    pytest.param(Client("a", 10_000, burst=1, every=0.1), id="within the quota"),
]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_quotas_in_force_give_what_happened(client: Client) -> None:
    events = run([client], quotas().limits(), 600)
    happened = sum(event["throttle_ms"] for event in events)
    assert throttle_ms(events, quotas()) == pytest.approx(happened, rel=0.05)


def test_the_same_with_kafkas_window() -> None:
    window = quotas(algorithm="window")
    events = run([Client("a", 50_000)], window.limits(), 600)
    happened = sum(event["throttle_ms"] for event in events)
    assert throttle_ms(events, window) == pytest.approx(happened, rel=0.05)


LIBRDKAFKA = [
    (30, 362522, 9, 792),
    (11, 212102, 11, 1056),
    (10, 192820, 10, 960),
    (10, 192820, 10, 957),
    (11, 212102, 11, 1057),
    (11, 193939, 11, 968),
    (11, 193939, 11, 965),
    (4, 65019, 4, 324),
]
"""Requests, bytes, those that waited and milliseconds, second by second: a real client at 200 kB/s. It begins
within a second, with small requests, as every client of a library that collects batches does.
"""


LARGE_BATCHES = [
    (4, 347153, 2, 737),
    *[(2, 198954, 2, 995)] * 6,
    (2, 83278, 2, 416),
]
"""The same, with batches of half a second."""
LATE_IN_A_SECOND = [
    (3, 298420, 1, 488),
    (2, 148200, 2, 741),
    *[(2, 198954, 2, 995)] * 5,
    (3, 182765, 3, 913),
]
"""The same, but the client begins at the end of a second, which ends during its first wait. Each later second
begins during a wait too.
"""


@pytest.mark.parametrize("client", [LIBRDKAFKA, LARGE_BATCHES, LATE_IN_A_SECOND])
def test_what_happened_to_a_real_client(client: list[tuple[int, int, int, int]]) -> None:
    events = [
        make_event(
            at=1000 * second,
            interval_ms=1000,
            requests=requests,
            bytes_in=size,
            throttled_requests=throttled,
            throttle_ms=waited,
        )
        for second, (requests, size, throttled, waited) in enumerate(client)
    ]
    happened = sum(waited for *_, waited in client)
    assert throttle_ms(events, quotas(200_000)) == pytest.approx(happened, rel=0.05)


PHASES = 20
EQUAL = (1.0,)
UNEQUAL = (1.0, 1.0, 1.0, 0.5)
SMALL_FIRST = (0.1, *[1.0] * 9)


@pytest.mark.parametrize("limit", [30_000, 200_000, MB])
@pytest.mark.parametrize("wait", [0.03, 0.1, 0.25, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("parts", [EQUAL, UNEQUAL, SMALL_FIRST])
def test_a_client_may_begin_anywhere_in_an_interval(
    limit: int, wait: float, parts: tuple[float, ...]
) -> None:
    """The end of an interval of a second splits the first burst, or a wait. `wait`: the seconds that the
    largest request takes at the limit.
    """
    sizes = tuple(round(limit * wait * part) for part in parts)
    differ = {}
    for phase in range(PHASES):
        begin = (phase + 0.1) / PHASES
        events = run(
            [Client("a", 0, sizes=sizes)], quotas(limit).limits(), 9 + begin, begin=begin, interval=1
        )
        happened = sum(event["throttle_ms"] for event in events)
        replayed = throttle_ms(events, quotas(limit))
        if replayed != pytest.approx(happened, rel=0.05):
            differ[begin] = happened, replayed
    assert differ == {}


@pytest.mark.parametrize("before", [140_000, 160_000, 180_000])
def test_a_burst_that_ends_an_interval_is_not_refilled_within_it(before: int) -> None:
    """A client at 200 kB/s begins at the end of a second: nothing waits in it, and the next one has the rest
    of a full bucket.
    """
    seconds = [(before, 0, 0), (420_000 - before, 11, 1000), *[(200_000, 10, 950)] * 5]
    events = [
        make_event(
            at=1000 * second,
            interval_ms=1000,
            requests=max(size // 20_000, 1),
            bytes_in=size,
            throttled_requests=throttled,
            throttle_ms=waited,
        )
        for second, (size, throttled, waited) in enumerate(seconds)
    ]
    happened = sum(waited for *_, waited in seconds)
    assert throttle_ms(events, quotas(200_000)) == pytest.approx(happened, rel=0.05)


def test_without_need_nobody_waits() -> None:
    events = run([Client("a", 16_000)], quotas().limits(), 120)
    assert throttle_ms(events, quotas(3 * MB)) == 0


def test_with_half_the_quota_the_client_falls_behind() -> None:
    events = run([Client("a", 16_000)], quotas().limits(), 120)
    (found,) = simulate(rows(events, quotas(MB / 2)), quotas(MB / 2))
    sent = sum(event["bytes_in"] for event in events)
    # Everything takes twice as long: all of it is sent while it waits, and the end comes two minutes late.
    assert found[3] == pytest.approx(sent / (MB / 2) * 1000, rel=0.05)
    assert found[5] == pytest.approx(120_000, rel=0.05)
    assert found[4] > 0.9 * sent


def tried_without_a_wait(events: list[dict[str, Any]], quotas: QuotaSet) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "nobody_waits", lambda rows, quotas: False)
        return throttle_ms(events, quotas) == 0


@pytest.mark.parametrize(
    ("size", "requests", "surely"),
    [
        pytest.param(0.9 * MB, 100, True, id="below the limit"),
        pytest.param(0.9 * MB, 4, False, id="in large requests"),
        pytest.param(1.1 * MB, 100, False, id="above it"),
    ],
)
def test_tenants_far_below_their_limit_need_no_trying(size: float, requests: int, surely: bool) -> None:
    """Two tenants share the bucket; one uses nine tenths of it."""
    events = [
        make_event(at=10_000 * step, client_id=name, bytes_in=round(size * of_ten), requests=requests)
        for step in range(20)
        for name, of_ten in (("a", 9), ("b", 1))
    ]
    assert nobody_waits(rows(events, quotas()), quotas()) == surely
    if surely:
        assert tried_without_a_wait(events, quotas())


def test_who_has_waited_is_tried() -> None:
    events = run([Client("a", 16_000)], quotas().limits(), 60)
    assert not nobody_waits(rows(events, quotas(3 * MB)), quotas(3 * MB))


def test_tenants_share_a_bucket(frame: Frame) -> None:
    """Two clients at 0.8 MB/s each stay below the quota alone, and exceed it together."""
    events = [
        make_event(user="alice", client_id=name, at=10_000 * step, bytes_in=8 * MB, requests=100)
        for step in range(12)
        for name in ("a", "b")
    ]
    alone = QuotaSet(Quotas(), {QuotaEntity("alice", ""): {PRODUCER_BYTE_RATE: MB}})
    together = QuotaSet(Quotas(), {QuotaEntity("alice", None): {PRODUCER_BYTE_RATE: MB}})
    assert replay(frame(*events), alone).collect() == []
    found = replay(frame(*events), together).collect()
    assert sorted(row.client_id for row in found) == ["a", "b"]
    assert all(row.after_throttle_ms > 10_000 for row in found)


def test_brokers_have_buckets_of_their_own(frame: Frame) -> None:
    events = [make_event(at=10_000 * step, broker=1 + step % 3, bytes_in=9 * MB) for step in range(30)]
    assert replay(frame(*events), quotas()).collect() == []


def test_a_quota_of_the_cluster_has_one_bucket(frame: Frame) -> None:
    """At three brokers and two proxies, a tenant sends 0.4 MB/s each. The bucket is full for 5 s."""
    events = [
        make_event(at=10_000 * step, broker=place, proxy=f"proxy-{place % 2}", bytes_in=4 * MB, requests=40)
        for step in range(12)
        for place in range(3)
    ]
    assert replay(frame(*events), quotas()).collect() == []
    (row,) = replay(frame(*events), quotas(scope="cluster")).collect()
    assert row.after_late_ms == pytest.approx(23_000, rel=0.1)
    assert row.after_throttle_ms > 100_000
    (own,) = replay(frame(*events), with_scope(quotas(), "cluster")).collect()
    assert own == row
    assert replay(frame(*events), with_scope(quotas(scope="cluster"), "broker")).collect() == []


def with_scope(quotas: QuotaSet, scope: str) -> QuotaSet:
    """The quotas with a scope of the entity's own."""
    return QuotaSet(quotas.settings, quotas.clients, scopes={EVERYBODY: scope})


@pytest.mark.parametrize("parts", [(3, 3, 3), (1, 2, 6)])
def test_a_quota_of_the_cluster_in_force_gives_what_happened(parts: tuple[int, ...]) -> None:
    """Each broker has a part of the limit."""
    whole = run([Client("a", 10_000, connections=9)], quotas().limits(), 300)
    counts = ("requests", "bytes_in", "throttled_requests", "throttle_ms")
    events = [
        {**event, "broker": broker, **{name: event[name] * part // 9 for name in counts}}
        for event in whole
        for broker, part in enumerate(parts)
    ]
    happened = sum(event["throttle_ms"] for event in events)
    assert throttle_ms(events, quotas(scope="cluster")) == pytest.approx(happened, rel=0.05)


def test_before_and_after(frame: Frame) -> None:
    waited = {"throttled_requests": 10, "throttle_ms": 9000, "quota": PRODUCER_BYTE_RATE}
    table = replay(
        frame(
            make_event(bytes_in=9 * MB, **waited),
            make_event(user="bob", api="Metadata", throttle_ms=70, throttled_requests=1, quota="x"),
            make_event(user="carol", api="Fetch", bytes_out=50 * MB, requests=50),
            make_event(user="dave", rejected_requests=3, rejected_bytes=500, quota="y"),
            make_event(user="erin", bytes_in=50 * MB),
        ),
        QuotaSet(
            Quotas(exempt=read_exempt("erin")),
            {
                QuotaEntity("alice", None): {PRODUCER_BYTE_RATE: 10 * MB},
                QuotaEntity("", None): {PRODUCER_BYTE_RATE: MB, "consumer_byte_rate": MB},
            },
        ),
    )
    assert table.columns == REPLAY.names
    found = {row.user: row for row in table.collect()}
    assert set(found) == {"alice", "bob", "carol", "dave"}
    assert (found["alice"].before_throttle_ms, found["alice"].after_throttle_ms) == (9000, 0)
    assert (found["bob"].before_throttle_ms, found["bob"].after_throttle_ms) == (70, None)
    assert found["carol"].quota == "consumer_byte_rate"
    assert found["carol"].before_throttle_ms == 0
    assert found["carol"].after_throttle_ms == pytest.approx(49_000, rel=0.05)
    assert (found["dave"].before_rejected_bytes, found["dave"].after_rejected_bytes) == (500, None)


def read_exempt(user: str) -> Any:
    return type(Quotas().exempt)(users=[user])


def test_the_job(spark: SparkSession, run_job: Callable[..., Result], tmp_path: Path) -> None:
    mutations = {"api": "CreateTopics", "topic": None, "quota": "controller_mutation_rate", "throttle_ms": 9}
    events = [make_event(bytes_in=21 * MB, requests=21, cluster=cluster) for cluster in ("local", "east")]
    events.append(make_event(user="bob", **mutations))
    lines = write_lines(tmp_path / "events.jsonl", events)
    file = tmp_path / "quotas.yaml"
    file.write_text(
        "quotas: {clients: [{entity: {user: <default>}, producer_byte_rate: 1000000, request_percentage: 5}]}"
    )
    result = run_job("replay", "--events", lines, "--out", tmp_path / "out", "--quotas", file)
    assert result.exit_code == 0, result.output
    rows = spark.read.parquet(str(tmp_path / "out/replay")).collect()
    assert sorted((row.cluster, row.user) for row in rows) == [
        ("east", "alice"),
        ("local", "alice"),
        ("local", "bob"),
    ]
    found = {row.user: row for row in rows if row.cluster == "local"}
    assert found["alice"].after_throttle_ms == pytest.approx(20_000, rel=0.1)
    assert found["bob"].after_throttle_ms is None
    untried, unknown = (line for line in result.output.splitlines() if line.startswith("Not replayed"))
    assert untried.endswith(": request_percentage")
    assert "after_" in unknown
    assert "controller_mutation_rate" in unknown
