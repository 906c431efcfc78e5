"""LimitSharing on a broker in memory; tests/integration/sharing/test_sharing.py has real processes."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Never, Protocol

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engines import QuotaEngines
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.controller_mutation import KIND as MUTATIONS
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.kinds.replication import KIND as REPLICATION
from proxy.quota.kinds.replication.kind import Replication
from proxy.quota.kinds.replication.throttle import LEADER
from proxy.quota.limits.config_keys import LEADER_THROTTLED_RATE
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.quota.measure.bucket import Bucket
from proxy.quota.sharing.local_uses import bucket_key
from proxy.quota.sharing.reported_uses import REPORT_BYTES
from proxy.quota.sharing.reports import SATURATED, BucketReport, Report
from proxy.quota.sharing.waterfill import RESERVE
from proxy.quota.verdict import Verdict
from proxy.server import limit_sharing
from proxy.server.limit_sharing import LimitSharing
from proxy.server.workers.channel import Record
from proxy.server.workers.worker_shares_log import WorkerSharesLog
from proxy.store import consumers
from proxy.store.sharing import shares_topic
from proxy.store.sharing.share_records import decode_report, encode_report
from proxy.store.sharing.shares_topic import SharesTopic
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.wire.api_keys import PRODUCE
from proxy.wire.views import RequestView
from tests.support.process.log_broker import LogBroker
from tests.support.quotas.buckets import live_by_node
from tests.support.waiting import reached

LIMIT = 1000.0
TIME_MS = 1_700_000_000_000


class Start(Protocol):
    def __call__(
        self, broker: LogBroker, name: str, clients: int = 1, engines: QuotaEngines | None = None
    ) -> tuple[LimitSharing, Bucket]: ...


def quota_engines() -> QuotaEngines:
    limits = Limits({QuotaEntity("u", DEFAULT): {"producer_byte_rate": LIMIT}})
    return QuotaEngines(load_kinds(), limits)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(shares_topic, "READ_SECONDS", 0.05)


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts a process's sharing, with a bucket in use, until the end of the test."""
    tasks = Tasks()

    def started(
        broker: LogBroker, name: str, clients: int = 1, engines: QuotaEngines | None = None
    ) -> tuple[LimitSharing, Bucket]:
        topic = SharesTopic(ClusterAccess((broker.address,), 5.0), broker.topic, tasks)
        engines = quota_engines() if engines is None else engines
        for number in range(clients):
            who = Identity("u", f"c{number}", "10.0.0.1")
            engines.engine(1, 0.0).admit(RequestView(PRODUCE, 9, 1, who.client_id, 10), who, 0.0)
        _, bucket = live_by_node(engines)[0]
        sharing = LimitSharing(name, engines, topic, asyncio.get_running_loop().time)
        tasks.start(sharing.follow())
        tasks.start(sharing.run())
        return sharing, bucket

    yield started
    await tasks.cancel()


async def test_a_process_alone_has_the_whole_limit(start: Start) -> None:
    async with LogBroker("shares", create=False, append_time_ms=TIME_MS) as broker:
        sharing, bucket = start(broker, "a")
        await asyncio.wait_for(sharing.joined.wait(), 30)
        assert (bucket.limit, sharing.instances, sharing.degraded) == (LIMIT, 1, False)


async def test_two_processes_have_half_each_and_one_that_leaves_gives_its_half_back(start: Start) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        (one, bucket), (other, others_bucket) = start(broker, "a"), start(broker, "a")
        await reached(lambda: bucket.limit == others_bucket.limit == LIMIT / 2, "both have half")
        assert (one.instances, other.instances) == (2, 2), "one name, and two processes"
        await other.leave()
        await reached(lambda: bucket.limit == LIMIT, "the first has all")
        assert decode_report(broker.values[-1]).instance.startswith("a/")
        assert any(decode_report(value).leaving for value in broker.values)


async def test_a_client_that_is_new_to_a_process_begins_with_an_equal_part(start: Start) -> None:
    engines = quota_engines()
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        (_, bucket), _ = start(broker, "a", engines=engines), start(broker, "b")
        await reached(lambda: bucket.limit == LIMIT / 2, "half of the limit")
        [produced, _] = [each for _, quota in engines.active() for each in quota.buckets()]
        await reached(lambda: produced.first_parts.of(bucket) == 0.5, "half of the limits to come")


async def test_a_process_that_has_left_reports_nothing_while_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of a supervisor can be written until the process ends, which may take seconds."""
    monkeypatch.setattr(limit_sharing, "REPORT_SECONDS", 0.01)
    monkeypatch.setattr(limit_sharing, "LONGEST_PAUSE", 0.01)
    written: list[Report] = []
    tasks = Tasks()

    def append(value: bytes) -> None:
        shares.take(Record(len(written), len(written), value))
        written.append(decode_report(value))

    def time() -> float:
        return asyncio.get_running_loop().time() * 20  # Heartbeats are due after 0.05 s.

    shares = WorkerSharesLog(append)
    sharing = LimitSharing("a", quota_engines(), shares, time)
    tasks.start(sharing.follow())
    tasks.start(sharing.run())
    await asyncio.wait_for(sharing.joined.wait(), 30)
    await sharing.leave()
    left = time()
    await reached(lambda: time() > left + 5.0 and sharing.lag_seconds > 2.0, "further passes")
    await tasks.cancel()
    assert [report.leaving for report in written].index(True) == len(written) - 1


async def test_a_larger_part_applies_before_the_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_sharing, "REPORT_SECONDS", 0.05)
    tasks, loop = Tasks(), asyncio.get_running_loop()
    engines = quota_engines()
    who = Identity("u", "c", "10.0.0.1")
    engines.engine(1, 0.0).admit(RequestView(PRODUCE, 9, 1, "c", 10), who, 0.0)
    _, bucket = live_by_node(engines)[0]
    bucket.record(1000 * LIMIT, loop.time(), who)
    written = 0
    without_demand = 1 << 30

    def put(value: bytes) -> None:
        nonlocal written
        shares.take(Record(written, int(loop.time() * 1000), value))
        written += 1

    def append(value: bytes) -> None:
        if decode_report(value).read_to > without_demand:
            monkeypatch.setattr(limit_sharing, "REPORT_SECONDS", 3600.0)
            monkeypatch.setattr(limit_sharing, "LONGEST_PAUSE", 3600.0)
        put(value)

    def report_of_b(number: int, demand: float) -> None:
        key = bucket_key(1, bucket)
        use = BucketReport(key=key, limit=LIMIT, used=0.0, demand=demand, waiting=1)
        put(encode_report(Report(instance="b", number=number, read_to=1 << 40, buckets=[use])))

    shares = WorkerSharesLog(append)
    sharing = LimitSharing("a", engines, shares, loop.time)
    tasks.start(sharing.follow())
    tasks.start(sharing.run())
    await asyncio.wait_for(sharing.joined.wait(), 30)
    report_of_b(1, SATURATED)
    await reached(lambda: 0.4 * LIMIT < bucket.limit < 0.6 * LIMIT, "half of the limit")
    without_demand = written
    report_of_b(2, 0.0)
    await reached(lambda: bucket.limit > 0.9 * LIMIT, "the whole limit")
    assert limit_sharing.LONGEST_PAUSE == 3600.0, "no pass was necessary"
    await tasks.cancel()


async def test_a_process_that_stops_using_a_limit_is_known_before_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This process reports that it has read of it, so that a third one may have the part of the second."""
    tasks, loop = Tasks(), asyncio.get_running_loop()
    engines = quota_engines()
    who = Identity("u", "c", "10.0.0.1")
    engines.engine(1, 0.0).admit(RequestView(PRODUCE, 9, 1, "c", 10), who, 0.0)
    _, bucket = live_by_node(engines)[0]
    written: list[Report] = []
    in_use = 1 << 30

    def put(value: bytes) -> None:
        shares.take(Record(len(written), int(loop.time() * 1000), value))
        written.append(decode_report(value))

    def append(value: bytes) -> None:
        if decode_report(value).read_to >= in_use:
            monkeypatch.setattr(limit_sharing, "REPORT_SECONDS", 3600.0)
            monkeypatch.setattr(limit_sharing, "LONGEST_PAUSE", 3600.0)
        put(value)

    def report_of(name: str, number: int, demand: float) -> None:
        use = BucketReport(key=bucket_key(1, bucket), limit=LIMIT, used=0.0, demand=demand, waiting=1)
        put(encode_report(Report(instance=name, number=number, read_to=1 << 40, buckets=[use])))

    shares = WorkerSharesLog(append)
    sharing = LimitSharing("a", engines, shares, loop.time)
    tasks.start(sharing.follow())
    tasks.start(sharing.run())
    await asyncio.wait_for(sharing.joined.wait(), 30)
    for name in "bc":
        report_of(name, 1, SATURATED)
    in_use = len(written)
    await reached(lambda: limit_sharing.LONGEST_PAUSE > 1.0, "the last pass for an hour")
    report_of("b", 2, 0.0)
    stopped = len(written)
    await reached(lambda: len(written) > stopped, "a report before the hour is over")
    assert written[-1].read_to == stopped
    await tasks.cancel()


async def test_throttle_times_are_short_while_there_are_several_processes(start: Start) -> None:
    engines, wait = quota_engines(), Verdict(60.0)
    mutations = engines.shared(MUTATIONS)
    assert isinstance(mutations, ControllerMutation)
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        sharing, bucket = start(broker, "a", engines=engines)
        await asyncio.wait_for(sharing.joined.wait(), 30)
        assert engines.engine(1, 0.0).max_throttle_seconds == UNLIMITED
        assert mutations.announced(wait) == 60.0
        other, _ = start(broker, "b")
        await reached(lambda: bucket.limit == LIMIT / 2, "half of the limit")
        assert engines.engine(1, 0.0).max_throttle_seconds == limit_sharing.REVIEW_SECONDS
        assert engines.engine(2, 0.0).max_throttle_seconds == limit_sharing.REVIEW_SECONDS, "a new broker"
        assert mutations.announced(wait) == limit_sharing.REVIEW_SECONDS
        await other.leave()
        await reached(lambda: engines.engine(1, 0.0).max_throttle_seconds == UNLIMITED, "no bound")


async def test_clients_are_served_although_the_topic_is_away(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_sharing, "JOIN_SECONDS", 0.1)
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        broker.silent.add(PRODUCE)
        sharing, bucket = start(broker, "a")
        await reached(lambda: sharing.lag_seconds > 3 * limit_sharing.JOIN_SECONDS, "a long wait")
        assert not sharing.joined.is_set(), "quotas are not loaded"
        await asyncio.wait_for(sharing.until_joined(), 30)
        assert sharing.joined.is_set()
        await reached(lambda: sharing.degraded, "the lack of reports")
        assert bucket.limit == LIMIT
        assert "uses the whole" in sharing.warnings()[0]


async def test_replicas_have_the_reserve_until_the_process_has_joined_or_waited(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Followers are served before clients: the topic's records are readable when followers have them."""
    monkeypatch.setattr(limit_sharing, "JOIN_SECONDS", 0.1)
    rates = Resources({}, {"1": {LEADER_THROTTLED_RATE.name: "1000"}})
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        for away in (False, True):
            limits = Limits({QuotaEntity("u", DEFAULT): {"producer_byte_rate": LIMIT}}, resources=rates)
            engines = QuotaEngines(load_kinds(), limits)
            broker.silent.add(PRODUCE)
            sharing, _ = start(broker, "a", engines=engines)
            engines.between_brokers(1, 0.0)
            [replication] = engines.of_kind(REPLICATION)
            assert isinstance(replication, Replication)
            throttle = replication.shared.throttle(LEADER, 1, 0.0)
            assert throttle.limit == 1000.0 * RESERVE
            if not away:
                broker.silent.clear()
            await sharing.until_joined()
            await reached(lambda throttle=throttle: throttle.limit == 1000.0, "the whole limit")


async def test_a_process_that_reads_its_first_record_late_keeps_the_whole_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It knows of no other process: the log was away for longer than it waits at the start."""
    monkeypatch.setattr(limit_sharing, "JOIN_SECONDS", 0.2)
    monkeypatch.setattr(limit_sharing, "REPORT_SECONDS", 0.01)
    tasks, loop = Tasks(), asyncio.get_running_loop()
    engines, written, passes, stopped_at = quota_engines(), list[bytes](), 0, float("inf")
    engines.engine(1, 0.0).admit(RequestView(PRODUCE, 9, 1, "c", 10), Identity("u", "c", "10.0.0.1"), 0.0)
    _, bucket = live_by_node(engines)[0]

    def time() -> float:
        nonlocal passes
        passes += 1
        return min(loop.time(), stopped_at)

    shares = WorkerSharesLog(written.append)
    sharing = LimitSharing("a", engines, shares, time)
    began = loop.time()
    tasks.start(sharing.follow())
    tasks.start(sharing.run())
    await reached(lambda: written and loop.time() > began + 2 * limit_sharing.JOIN_SECONDS, "a long wait")
    stopped_at = loop.time()
    shares.take(Record(0, int(stopped_at * 1000), written[0]))
    await reached(lambda: sharing._sharing.instances, "its own record")
    before = passes
    await reached(lambda: passes > before + 100, "some passes")
    assert not sharing.joined.is_set()
    assert bucket.limit == LIMIT
    assert engines.engine(1, 0.0).max_throttle_seconds == limit_sharing.REVIEW_SECONDS, "it may change"
    await tasks.cancel()


async def test_each_silence_of_the_log_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(limit_sharing, "REPORT_SECONDS", 0.01)
    monkeypatch.setattr(limit_sharing, "LONGEST_PAUSE", 0.01)
    tasks, written, delivers, now = Tasks(), 0, True, 0.0

    def append(value: bytes) -> None:
        nonlocal written
        if delivers:
            shares.take(Record(written, written, value))
            written += 1

    def time() -> float:
        """Go on with each look, not while the machine pauses: that would be a silence, too."""
        nonlocal now
        now += 0.02
        return now

    def lines(said: str = "no report has arrived") -> int:
        return len([message for message in caplog.messages if said in message])

    shares = WorkerSharesLog(append)
    sharing = LimitSharing("a", quota_engines(), shares, time)
    tasks.start(sharing.follow())
    tasks.start(sharing.run())
    await asyncio.wait_for(sharing.joined.wait(), 30)
    for silence in (1, 2):
        delivers = False
        await reached(lambda number=silence: lines() == number, "a line in the log")
        lag = sharing.lag_seconds
        await reached(lambda before=lag: sharing.lag_seconds > before + 5.0, "further passes")
        assert lines() == silence
        assert lines("no longer degraded") == silence - 1
        delivers = True
        await reached(lambda number=silence: lines("no longer degraded") == number, "the line of its end")
        assert not sharing.degraded
    await tasks.cancel()
    assert lines("keeps its part") == 2


async def test_a_new_topic_keeps_the_parts_until_all_have_joined(start: Start) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        sharing, bucket = start(broker, "a")
        await asyncio.wait_for(sharing.joined.wait(), 30)
        broker.delete()
        await reached(lambda: broker.topic_id, "the new topic")
        # On a busy machine no record may come for seconds, and then it is degraded.
        assert bucket.limit == LIMIT or sharing.degraded
        assert not any("uses the whole" in warning for warning in sharing.warnings())
        await reached(lambda: broker.values and not sharing.degraded, "a report in it")
        await reached(lambda: bucket.limit == LIMIT, "its whole part")


async def test_until_a_process_has_joined_it_says_so(start: Start) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        broker.silent.add(PRODUCE)
        sharing, _ = start(broker, "a")
        await reached(lambda: not sharing.shares_log.problem, "the topic is read")
        assert sharing.problem.startswith("joining")
        assert sharing.warnings() == []
        broker.silent.clear()
        await asyncio.wait_for(sharing.joined.wait(), 30)
        assert sharing.problem == ""


async def test_an_internal_error_leaves_an_equal_part_until_it_is_over(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(report: Report) -> Never:
        raise RuntimeError("WHY")

    monkeypatch.setattr(limit_sharing, "FAILED_SECONDS", 1.5)
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        (one, bucket), (other, others_bucket) = start(broker, "a"), start(broker, "b")
        await reached(lambda: bucket.limit == others_bucket.limit == LIMIT / 2, "both have half")
        bucket.share(0.9, asyncio.get_running_loop().time())
        with monkeypatch.context() as patched:
            patched.setattr(one.shares_log, "append", fail)
            await reached(lambda: one.failures > 2, "failures")
            assert bucket.limit == LIMIT / 2
            assert (one.degraded, other.degraded) == (True, False)
            [warning] = one.warnings()
            assert "WHY" in warning
        await reached(lambda: not one.degraded, "its end")
        assert one.warnings() == []
        assert len([record for record in caplog.records if record.exc_info]) == 1


async def test_a_process_that_may_not_write_uses_its_reserve(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others do not know it, so they use the whole limit."""
    monkeypatch.setattr(limit_sharing, "JOIN_SECONDS", 0.1)
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        broker.produce_error = ErrorCode.topic_authorization_failed
        report = Report(instance="other/1", number=1, read_to=0, buckets=[])
        broker.append([(None, encode_report(report))])
        sharing, bucket = start(broker, "a")
        await reached(lambda: bucket.limit == pytest.approx(LIMIT * RESERVE), "the reserve")
        await reached(lambda: sharing.shares_log.problem, "the error")
        await sharing.until_joined()
        await reached(
            lambda: any("grant the proxy" in warning for warning in sharing.warnings()), "the advice"
        )


async def test_two_processes_with_one_name_are_named(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        (one, bucket), (other, _), (third, _) = (
            start(broker, "SAME"),
            start(broker, "SAME"),
            start(broker, "b"),
        )
        await reached(lambda: bucket.limit == pytest.approx(LIMIT / 3), "all have joined")
        assert one.warnings() == [], "one may replace the other"
        monkeypatch.setattr(limit_sharing, "DUPLICATE_SECONDS", 0.0)
        await reached(lambda: one.warnings() and other.warnings(), "the warnings")
        assert all(named in one.warnings()[0] for named in ("2 live processes", "SAME"))
        assert third.warnings() == []
        assert bucket.limit == pytest.approx(LIMIT / 3)
        await other.leave()
        await reached(lambda: not one.warnings(), "the end of the warning")
        assert len([message for message in caplog.messages if "SAME" in message]) == 2


async def test_foreign_records_and_newer_ones_are_named_and_limits_hold(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        (one, bucket), (_, others_bucket) = start(broker, "a"), start(broker, "b")
        await reached(lambda: bucket.limit == others_bucket.limit == LIMIT / 2, "both have half")
        newer = {"v": 2, "instance": "NEWER/1", "number": 1, "read_to": 0, "buckets": "another shape"}
        broker.append([(None, b"FOREIGN"), (None, json.dumps(newer).encode())])
        await reached(lambda: len(one.warnings()) == 2, "both")
        named, skipped = one.warnings()
        assert "NEWER/1" in named
        assert "topic shares" in skipped
        await reached(
            lambda: sum("NEWER/1" in line for line in caplog.messages) == 2, "a line of each process"
        )
        await reached(lambda: bucket.limit == others_bucket.limit == pytest.approx(LIMIT / 3), "a third each")


async def test_a_pass_over_many_buckets_lets_the_event_loop_run(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_sharing, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(limit_sharing, "BUCKETS_AT_A_TIME", 10)
    sleep, turns = asyncio.sleep, 0

    async def counted(delay: float) -> None:
        nonlocal turns
        turns += delay == 0
        await sleep(delay)

    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        sharing, _ = start(broker, "a", 1000)
        await asyncio.wait_for(sharing.joined.wait(), 30)
        monkeypatch.setattr(asyncio, "sleep", counted)
        await reached(lambda: turns >= 99, "a turn after each slice")


async def test_thousands_of_buckets_take_several_reports_in_one_pass(start: Start) -> None:
    """The others read each report in one turn of their event loop."""
    ids = [f"{number}".ljust(200, "x") for number in range(2000)]
    engines = quota_engines()
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        (one, _), _ = start(broker, "a", engines=engines), start(broker, "b")
        await reached(lambda: one.instances == 2, "two processes")
        now = asyncio.get_running_loop().time()
        for name in ids:
            who = Identity("u", name, "10.0.0.1")
            engines.engine(1, now).admit(RequestView(PRODUCE, 9, 1, name, int(100 * LIMIT)), who, now)

        def told() -> list[int]:
            reports = [decode_report(value) for value in broker.values]
            return [len(each.buckets) for each in reports if each.instance.startswith("a/")]

        await reached(lambda: sum(told()) >= len(ids), "all of them")
        assert max(told()) * 300 <= REPORT_BYTES


async def test_a_process_that_joins_is_known_before_the_next_look_at_the_limits(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others look at their limits and report as soon as they have read of it, however long the pause."""
    for name in ("REPORT_SECONDS", "LONGEST_PAUSE"):
        monkeypatch.setattr(limit_sharing, name, 3600.0)
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        one, bucket = start(broker, "a")
        await asyncio.wait_for(one.joined.wait(), 30)
        other, _ = start(broker, "b")
        await asyncio.wait_for(other.joined.wait(), 30)
        assert bucket.limit == LIMIT / 2
