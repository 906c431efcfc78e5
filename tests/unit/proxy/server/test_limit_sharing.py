"""LimitSharing on a broker in memory; tests/integration/test_sharing.py has real processes."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from proxy.quota.engines import QuotaEngines
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.server import limit_sharing
from proxy.server.limit_sharing import LimitSharing
from proxy.store import shares_topic
from proxy.store.share_records import decode_report
from proxy.store.shares_topic import SharesTopic
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.wire.api_keys import PRODUCE
from proxy.wire.views import RequestView
from tests.support.process.log_broker import LogBroker
from tests.support.waiting import reached

LIMIT = 1000.0
TIME_MS = 1_700_000_000_000
Start = Callable[[LogBroker, str], tuple[LimitSharing, Bucket]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares_topic, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(shares_topic, "READ_SECONDS", 0.05)


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts a process's sharing, with a bucket in use, until the end of the test."""
    tasks = Tasks()

    def started(broker: LogBroker, name: str) -> tuple[LimitSharing, Bucket]:
        topic = SharesTopic(ClusterAccess((broker.address,), 5.0), broker.topic, tasks)
        limits = Limits({QuotaEntity("u", None): {"producer_byte_rate": LIMIT}})
        engines = QuotaEngines(load_kinds(), limits)
        who = Identity("u", "c", "10.0.0.1")
        engines.engine(1, 0.0).admit(RequestView(PRODUCE, 9, 1, "c", 10), who, 0.0)
        [(_, bucket)] = engines.live()
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


async def test_clients_are_served_although_the_topic_is_away(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_sharing, "JOIN_SECONDS", 0.1)
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        broker.silent.add(PRODUCE)
        sharing, bucket = start(broker, "a")
        await asyncio.wait_for(sharing.joined.wait(), 30)
        await reached(lambda: sharing.degraded, "the lack of reports")
        assert bucket.limit == LIMIT


async def test_a_new_topic_keeps_the_parts_until_all_have_joined(start: Start) -> None:
    async with LogBroker("shares", append_time_ms=TIME_MS) as broker:
        sharing, bucket = start(broker, "a")
        await asyncio.wait_for(sharing.joined.wait(), 30)
        broker.delete()
        await reached(lambda: broker.topic_id, "the new topic")
        assert bucket.limit == LIMIT
        await reached(lambda: broker.values and not sharing.degraded, "a report in it")
        assert bucket.limit == LIMIT
