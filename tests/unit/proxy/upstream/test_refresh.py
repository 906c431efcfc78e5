"""ClusterRefresh: its requests, how often it sends them, and its views."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.cluster_view import ClusterView, Partition
from proxy.upstream import refresh
from proxy.upstream.refresh import ClusterRefresh
from tests.support.process.metadata_broker import ORDERS, MetadataBroker


class Watch:
    """A running refresh, and the views that it gave."""

    def __init__(self, broker: MetadataBroker) -> None:
        self.changed: list[ClusterView] = []
        self.views: asyncio.Queue[ClusterView] = asyncio.Queue()
        self.refresh = ClusterRefresh(
            "clients", [broker.address], 5.0, self.changed.append, self.views.put_nowait
        )
        self._task = asyncio.get_running_loop().create_task(self.refresh.run())

    async def next(self) -> ClusterView:
        async with asyncio.timeout(10):
            return await self.views.get()

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.refresh.close()


@pytest.fixture
async def broker() -> AsyncIterator[MetadataBroker]:
    async with MetadataBroker() as broker:
        yield broker


@pytest.fixture
async def watch(broker: MetadataBroker, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watch]:
    """It asks again only when something makes it."""
    monkeypatch.setattr(refresh, "REFRESH_SECONDS", 1000.0)
    monkeypatch.setattr(refresh, "STALE_SECONDS", 0.0)
    watch = Watch(broker)
    yield watch
    await watch.end()


async def test_partitions_are_not_asked_for_unless_wanted(broker: MetadataBroker, watch: Watch) -> None:
    assert not watch.refresh.responded.is_set()
    view = await watch.next()
    assert watch.refresh.responded.is_set()
    assert [asked.topics for asked in broker.asked] == [()]
    assert not view.has_partitions
    assert view.partitions == {}
    assert view.topic_name(ORDERS.bytes) == ""


async def test_wanted_partitions_are_there_at_once(broker: MetadataBroker, watch: Watch) -> None:
    await watch.next()
    watch.refresh.want_partitions = True
    before = asyncio.get_running_loop().time()
    view = await watch.next()
    assert before <= view.as_of <= asyncio.get_running_loop().time()
    assert broker.asked[-1].topics is None
    assert view.has_partitions
    first, second = view.partitions["orders", 0], view.partitions["orders", 1]
    assert (first.leader, first.replicas, first.isr) == (1, (1, 2), {1})
    assert (second.leader, second.replicas, second.isr) == (-1, (2, 3), {2})
    assert view.topic_name(ORDERS.bytes) == "orders"
    assert len(watch.changed) == 1, "the brokers are the same"


async def test_names_of_all_topics_are_asked_for_at_the_usual_pace(
    broker: MetadataBroker, watch: Watch
) -> None:
    await watch.next()
    watch.refresh.want_topics = True
    watch.refresh.request_refresh()
    view = await watch.next()
    assert broker.asked[-1].topics is None
    assert view.topic_name(ORDERS.bytes) == "orders"
    assert watch.views.empty()


async def test_names_of_all_topics_are_asked_for_once(broker: MetadataBroker, watch: Watch) -> None:
    await watch.next()
    watch.refresh.want_all_names()
    view = await watch.next()
    assert broker.asked[-1].topics is None
    assert view.topic_name(ORDERS.bytes) == "orders"
    watch.refresh.request_refresh()
    await watch.next()
    assert broker.asked[-1].topics == ()


async def test_failures_request_one_view_a_second_at_most(
    broker: MetadataBroker, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that a request needs are asked for at once all the same."""
    monkeypatch.setattr(refresh, "STALE_SECONDS", 1000.0)
    await watch.next()
    for _ in range(100):
        watch.refresh.request_refresh()
        await asyncio.sleep(0)
    watch.refresh.want_names([ORDERS.bytes])
    view = await watch.next()
    assert view.topic_name(ORDERS.bytes) == "orders"
    assert [asked.topics for asked in broker.asked][:1] == [()]
    assert len(broker.asked) == 2


async def test_a_view_that_seems_stale_is_replaced_when_it_is_old_enough(
    broker: MetadataBroker, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "STALE_SECONDS", 0.2)
    first = await watch.next()
    for _ in range(10):
        watch.refresh.request_refresh()
    second = await watch.next()
    # The age counts from before the first request connected to the broker.
    assert second.as_of - first.as_of >= 0.1
    assert len(broker.asked) == 2


async def test_partitions_are_kept_fresh(
    broker: MetadataBroker, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "PARTITIONS_SECONDS", 0.02)
    await watch.next()
    watch.refresh.want_partitions = True
    before = await watch.next()
    broker.partitions = [(2, (1, 2), (1, 2))]
    view = before
    while view.partitions == before.partitions or len(view.partitions) > 1:
        view = await watch.next()
    assert view.as_of > before.as_of
    assert view.partitions["orders", 0].isr == {1, 2}


async def test_a_topic_that_the_broker_cannot_tell_about_has_no_partitions(
    broker: MetadataBroker, watch: Watch
) -> None:
    await watch.next()
    broker.fault = ErrorCode.topic_authorization_failed
    watch.refresh.want_partitions = True
    view = await watch.next()
    assert view.has_partitions
    assert view.partitions == {}


async def test_a_name_is_asked_for_by_id(broker: MetadataBroker, watch: Watch) -> None:
    await watch.next()
    watch.refresh.want_names([ORDERS.bytes])
    assert watch.refresh.awaits_name(ORDERS.bytes)
    view = await watch.next()
    assert not watch.refresh.awaits_name(ORDERS.bytes)
    topics = broker.asked[-1].topics
    assert topics is not None
    assert [topic.topic_id for topic in topics] == [ORDERS]
    assert view.topic_name(ORDERS.bytes) == "orders"


def test_view_has_partitions() -> None:
    partition = Partition(1, (1, 2, 3), frozenset([1, 3]))
    view = ClusterView("c", {}, {}, {("orders", 0): partition}, 5.0)
    assert view.partitions["orders", 0] is partition
    assert view.as_of == 5.0
