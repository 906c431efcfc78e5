"""SharesTopic on a broker in memory; tests/integration/sharing/test_sharing.py has a real topic."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiokafka.errors import RequestTimedOutError
from kio.schema.errors import ErrorCode

from proxy.quota.sharing.reports import BucketReport, Report
from proxy.store import consumers
from proxy.store.sharing import shares_topic
from proxy.store.sharing.share_records import cluster_of, decode_report, encode_report
from proxy.store.sharing.shares_topic import PLAN, UNSENT_AT_MOST, SharesTopic
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.wire.api_keys import FETCH, LIST_OFFSETS, PRODUCE
from tests.support.process.log_broker import LogBroker
from tests.support.waiting import reached

TIME_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(shares_topic, "READ_SECONDS", 0.05)
    monkeypatch.setattr(shares_topic, "REQUEST_SECONDS", 1.0)


def report(number: int) -> Report:
    return Report(instance="a/1", number=number, read_to=0, buckets=[])


@dataclass
class Follower:
    """What a process reads of the topic."""

    tasks: Tasks = field(default_factory=Tasks)
    topics: list[SharesTopic] = field(default_factory=list)
    seen: list[tuple[int, int, int]] = field(default_factory=list)
    """Number, offset and time of each report."""
    begun_anew: int = 0
    failures: list[type[BaseException]] = field(default_factory=list)
    """What the next reports raise."""

    def follow(
        self, broker: LogBroker, cluster: str = "", failed: set[tuple[str, int]] | None = None
    ) -> SharesTopic:
        access = ClusterAccess((broker.address,), 5.0, failed=set() if failed is None else failed)
        topic = SharesTopic(access, broker.topic, self.tasks, cluster)
        self.topics.append(topic)
        self.tasks.start(topic.run(self._see, self._begin_anew))
        return topic

    async def end(self) -> None:
        for topic in self.topics:
            await topic.close()
        await self.tasks.cancel()

    def _see(self, report: Report, offset: int, timestamp_ms: int) -> None:
        if self.failures:
            raise self.failures.pop()
        self.seen.append((report.number, offset, timestamp_ms))

    def _begin_anew(self) -> None:
        self.begun_anew += 1


@pytest.fixture
async def follower() -> AsyncIterator[Follower]:
    follower = Follower()
    yield follower
    await follower.end()


async def test_reports_come_back_with_their_offsets_and_the_brokers_time(follower: Follower) -> None:
    async with LogBroker("shares", create=False, append_time_ms=TIME_MS) as broker:
        topic = follower.follow(broker)
        await reached(lambda: not topic.problem, "the topic is followed")
        assert broker.partitions == PLAN.partitions == 1
        assert broker.configs["min.insync.replicas"] == "1", (
            "otherwise a broker that is down keeps reports unread"
        )
        topic.append(report(1))
        await reached(lambda: follower.seen, "the first report")
        topic.append(report(2))
        await reached(lambda: len(follower.seen) == 2, "the second report")
        assert follower.seen == [(1, 0, TIME_MS), (2, 1, TIME_MS)]
        await topic.close()


async def test_a_report_of_many_limits_takes_less_than_half_of_its_bytes(follower: Follower) -> None:
    buckets = [
        BucketReport(
            key=f"17:tenant-{number}/1", limit=1048576.0, used=734003.2 * number, demand=9.5e5, waiting=3
        )
        for number in range(500)
    ]
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        topic = follower.follow(broker)
        await reached(lambda: not topic.problem, "the topic is followed")
        large = Report(instance="a/1", number=1, read_to=0, buckets=buckets)
        topic.append(large)
        await reached(lambda: follower.seen, "the report")
        assert broker.values == [encode_report(large)]
        assert 2 * broker.size < len(encode_report(large))


async def test_records_that_are_no_reports_are_skipped(follower: Follower) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        broker.append([(None, b"{}"), (None, encode_report(report(5))), (None, b'{"v": 9}')])
        topic = follower.follow(broker)
        await reached(lambda: topic.skipped.total == 2, "all records")
        assert follower.seen == [(5, 1, TIME_MS)]


async def test_processes_of_another_cluster_are_ignored(
    follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        clusters = ("other", "kafka", "other", "")
        broker.append([(None, encode_report(report(n), name)) for n, name in enumerate(clusters, 1)])
        topic = follower.follow(broker, "kafka")
        await reached(lambda: len(follower.seen) == 2 and topic.writable, "the others")
        assert [number for number, _, _ in follower.seen] == [2, 4]
        assert len([message for message in caplog.messages if "'other'" in message]) == 1
        topic.append(report(5))
        await reached(lambda: len(follower.seen) == 3, "its own")
        assert cluster_of(broker.values[-1]) == "kafka"


async def test_the_senders_time_is_not_taken_and_this_is_said_until_the_topic_is_corrected(
    follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    async with LogBroker("shares") as broker:
        broker.append([(None, encode_report(report(5)))])
        topic = follower.follow(broker)
        await reached(lambda: topic.writable, "the topic is followed")
        topic.append(report(6))
        await reached(lambda: "LogAppendTime; set it" in topic.problem, "the problem")
        topic.append(report(7))
        await reached(lambda: len(broker.values) == 3, "another report")
        assert follower.seen == []
        assert len([message for message in caplog.messages if "LogAppendTime" in message]) == 1
        broker.append_time_ms = TIME_MS
        topic.append(report(8))
        await reached(lambda: follower.seen == [(8, 3, TIME_MS)], "the report")
        assert topic.problem == ""


async def test_only_the_last_records_are_read_at_the_start(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares_topic, "BEFORE_END", 2)
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        for number in range(1, 6):
            broker.append([(None, encode_report(report(number)))])
        follower.follow(broker)
        await reached(lambda: len(follower.seen) == 2, "the last two")
        assert [number for number, _, _ in follower.seen] == [4, 5]


async def test_a_topic_that_is_made_again_is_read_from_its_start(follower: Follower) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        broker.append([(None, encode_report(report(1)))] * 3)
        topic = follower.follow(broker)
        await reached(lambda: len(follower.seen) == 3, "the first topic")
        broker.delete()
        await reached(lambda: topic.problem, "the topic's absence")
        await reached(lambda: follower.begun_anew == 1 and not topic.problem, "the new topic")
        topic.append(report(2))
        await reached(lambda: follower.seen[-1] == (2, 0, TIME_MS), "its first report")


async def test_reports_for_a_topic_that_was_deleted_leave_room_for_those_for_the_new_one(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer keeps reports for a topic that is gone, for as long as it runs."""

    async def keep(topic: SharesTopic, producer: object, key: bytes, value: bytes) -> None:
        await send(topic, first if number_of(value) == 1 else producer, key, value)

    def number_of(value: bytes) -> int:
        return decode_report(value).number

    class Keeps:
        async def send_and_wait(self, *_: object, **__: object) -> None:
            await asyncio.Event().wait()

    first, send = Keeps(), SharesTopic._send
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        broker.append([(None, encode_report(report(3)))])
        topic = follower.follow(broker)
        await reached(lambda: topic.writable, "the topic is followed")
        monkeypatch.setattr(SharesTopic, "_send", keep)
        for _ in range(UNSENT_AT_MOST):
            topic.append(report(1))
        broker.delete()
        await reached(lambda: follower.begun_anew == 1 and not topic.problem, "the new topic")
        topic.append(report(2))
        await reached(lambda: follower.seen[-1] == (2, 0, TIME_MS), "its first report")


async def test_what_a_producer_that_was_abandoned_cannot_write_is_no_problem(follower: Follower) -> None:
    failed = asyncio.Event()

    class Abandoned:
        async def send_and_wait(self, *_: object, **__: object) -> None:
            failed.set()
            raise RequestTimedOutError

    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        topic = follower.follow(broker)
        await reached(lambda: topic.writable, "the topic is followed")
        for number in (1, 2):
            topic.append(report(number))
        await topic._send(Abandoned(), b"", b"")
        assert failed.is_set()
        assert not topic.problem
        await reached(lambda: topic.unsent == 0, "its own reports")


async def test_a_write_that_fails_is_a_problem_until_one_succeeds(follower: Follower) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        topic = follower.follow(broker)
        await reached(lambda: not topic.problem, "the topic is followed")
        broker.produce_error = ErrorCode.topic_authorization_failed
        topic.append(report(1))
        await reached(lambda: topic.problem, "the error")
        broker.produce_error = ErrorCode.none
        topic.append(report(2))
        await reached(lambda: not topic.problem, "the success")
        assert [decode_report(value).number for value in broker.values] == [2]


async def test_a_leader_that_hangs_is_noted_for_all_parts_of_the_proxy(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, int]] = []

    class Failed(set[tuple[str, int]]):
        def add(self, address: tuple[str, int]) -> None:
            noted.append(address)
            super().add(address)

    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        failed = Failed()
        topic = follower.follow(broker, failed=failed)
        await reached(lambda: topic.writable, "the topic is followed")
        assert not noted
        # Not before: a busy machine may pause for as long.
        monkeypatch.setattr(shares_topic, "LEADER_SECONDS", 0.2)
        broker.silent.update((FETCH, LIST_OFFSETS))
        await reached(lambda: noted, "the failure")
        assert noted[0] == broker.address
        broker.silent.clear()
        await reached(lambda: not failed and not topic.problem, "the leader's return")


async def test_who_may_not_read_does_not_write_and_says_it_once(
    follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        broker.append([(None, encode_report(report(1)))])
        broker.fetch_error = ErrorCode.topic_authorization_failed
        topic = follower.follow(broker)
        for _ in range(3):
            fetched = broker.fetches
            await reached(lambda fetched=fetched: broker.fetches > fetched, "another try")
            assert not topic.writable
        assert "grant the proxy" in topic.problem
        assert len([line for line in caplog.messages if "grant the proxy" in line]) == 1
        broker.fetch_error = ErrorCode.none
        await reached(lambda: topic.writable and not topic.problem, "the right to read")
        assert follower.seen == [(1, 0, TIME_MS)]


async def test_reports_that_the_broker_does_not_take_are_dropped(follower: Follower) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        topic = follower.follow(broker)
        await reached(lambda: not topic.problem, "the topic is followed")
        broker.silent.add(PRODUCE)
        for number in range(1, 5 * UNSENT_AT_MOST):
            topic.append(report(number))
        assert topic.unsent == UNSENT_AT_MOST
        await follower.tasks.cancel()


@pytest.mark.parametrize("failure", [RuntimeError, asyncio.CancelledError])
async def test_no_failure_ends_the_reading(follower: Follower, failure: type[BaseException]) -> None:
    """aiokafka raises a CancelledError of its own where a fetch waits for a retry."""
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        follower.failures.append(failure)
        broker.append([(None, encode_report(report(1)))])
        topic = follower.follow(broker)
        await reached(lambda: not follower.failures, "the failure")
        broker.append([(None, encode_report(report(2)))])
        await reached(lambda: follower.seen == [(2, 1, TIME_MS)], "the next report")
        await reached(lambda: not topic.problem, "the end of the problem")


async def test_aiokafka_does_not_log_that_the_cluster_is_away() -> None:
    logging.getLogger("aiokafka").setLevel(logging.NOTSET)
    SharesTopic(ClusterAccess((("127.0.0.1", 1),), 5.0), "shares", Tasks())
    assert not logging.getLogger("aiokafka").isEnabledFor(logging.ERROR)
