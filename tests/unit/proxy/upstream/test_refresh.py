"""ClusterRefresh: its requests, how often it sends them, and its views."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.cluster_view import ClusterView
from proxy.security.access import Access
from proxy.security.broker_hosts import BrokerHosts
from proxy.upstream import refresh
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from tests.support.process.metadata_broker import ORDERS, MetadataBroker
from tests.support.waiting import SECONDS, reached


class Watch:
    """A running refresh, and the views that it gave."""

    def __init__(self, broker: MetadataBroker) -> None:
        self.began = asyncio.get_running_loop().time()
        self.changed: list[ClusterView] = []
        self.views: asyncio.Queue[ClusterView] = asyncio.Queue()
        self.refresh = ClusterRefresh(
            "clients", ClusterAccess((broker.address,), 5.0), self.changed.append, self.views.put_nowait
        )
        self._task = asyncio.get_running_loop().create_task(self.refresh.run())

    async def next(self) -> ClusterView:
        async with asyncio.timeout(SECONDS):
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
    assert view.leaders == {}
    assert view.topic_name(ORDERS.bytes) == ""


async def test_other_parts_connect_to_the_brokers_of_the_metadata_too(
    broker: MetadataBroker, watch: Watch
) -> None:
    assert watch.refresh.cluster_access.addresses == [broker.address]
    broker.others = {1: ("kafka-1", 9092), 2: ("kafka-2", 9092)}
    await watch.next()
    assert watch.refresh.cluster_access.addresses == [("kafka-1", 9092), ("kafka-2", 9092), broker.address]


async def test_another_cluster_at_the_same_addresses_is_logged(
    broker: MetadataBroker, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    first = await watch.next()
    watch.refresh.request_refresh()
    assert (await watch.next()).cluster_id == first.cluster_id
    assert caplog.records == []
    broker.cluster_id = "another"
    watch.refresh.request_refresh()
    assert (await watch.next()).cluster_id == "another"
    [record] = caplog.records
    assert "another instead of c" in record.message


async def test_wanted_partitions_are_there_at_once(broker: MetadataBroker, watch: Watch) -> None:
    await watch.next()
    watch.refresh.want_partitions = True
    view = await watch.next()
    assert broker.asked[-1].topics is None
    assert view.has_partitions
    assert view.leaders == {("orders", 0): 1, ("orders", 1): -1}
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
    await watch.next()
    for _ in range(10):
        watch.refresh.request_refresh()
    await watch.next()
    # The age counts from before the first request connects to the broker, which may take long.
    _, second = broker.asked_at
    assert second - watch.began >= 0.2 - 0.001


async def test_partitions_are_kept_fresh(
    broker: MetadataBroker, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "PARTITIONS_SECONDS", 0.02)
    await watch.next()
    watch.refresh.want_partitions = True
    before = await watch.next()
    broker.partitions = [(2, (1, 2), (1, 2))]
    view = before
    while view.leaders == before.leaders or len(view.leaders) > 1:
        view = await watch.next()
    assert view.leaders == {("orders", 0): 2}


async def test_a_topic_that_the_broker_cannot_tell_about_has_no_partitions(
    broker: MetadataBroker, watch: Watch
) -> None:
    await watch.next()
    broker.fault = ErrorCode.topic_authorization_failed
    watch.refresh.want_partitions = True
    view = await watch.next()
    assert view.has_partitions
    assert view.leaders == {}


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


async def test_names_of_all_topics_that_do_not_parse_are_a_problem_of_the_broker(
    broker: MetadataBroker, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "RETRY_SECONDS", 0.01)
    await watch.next()

    async def unreadable(request: object) -> bytes:
        return bytes(20)

    upstream = watch.refresh._broker
    assert upstream is not None
    monkeypatch.setattr(upstream, "ask_unread", unreadable)
    watch.refresh.want_all_names()
    await watch.next()
    assert watch.refresh._broker is not upstream
    assert watch.refresh.topic_name(ORDERS.bytes) == "orders"


async def test_names_of_all_topics_leave_the_brokers_and_the_partitions_as_they_are(
    broker: MetadataBroker, watch: Watch
) -> None:
    before = await watch.next()
    watch.refresh.want_all_names()
    after = await watch.next()
    assert after is before
    assert after.topic_name(ORDERS.bytes) == "orders"
    assert watch.refresh.responses == watch.refresh.requests


async def test_names_that_are_wanted_while_a_request_is_in_flight_get_one_of_their_own(
    broker: MetadataBroker, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response says nothing about what was wanted after its request."""
    await watch.next()
    respond = broker.respond

    async def want_more(request: Any) -> Any:
        monkeypatch.setattr(broker, "respond", respond)
        watch.refresh.want_names([ORDERS.bytes])
        watch.refresh.want_all_names()
        return await respond(request)

    monkeypatch.setattr(broker, "respond", want_more)
    sent = watch.refresh.requests
    watch.refresh.want_names([bytes(16)])
    await watch.next()
    assert watch.refresh.awaits_name(ORDERS.bytes)
    assert watch.refresh.responses <= sent + 1
    await watch.next()
    assert [asked.topics is None for asked in broker.asked] == [False, False, True]
    assert not watch.refresh.awaits_name(ORDERS.bytes)


async def test_names_are_still_wanted_after_a_request_that_failed(
    broker: MetadataBroker, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "RETRY_SECONDS", 0.01)
    await watch.next()
    sent = watch.refresh.requests
    upstream = watch.refresh._broker
    assert upstream is not None

    async def fails(request: object, schema: object) -> None:
        raise EOFError

    monkeypatch.setattr(upstream, "ask", fails)
    watch.refresh.want_names([ORDERS.bytes])
    view = await watch.next()
    assert view.topic_name(ORDERS.bytes) == "orders"
    assert watch.refresh.requests == sent + 2


async def test_a_topic_that_the_proxy_may_not_describe_is_hidden_and_reported_once(
    broker: MetadataBroker, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    await watch.next()
    broker.fault = ErrorCode.topic_authorization_failed
    for _ in range(2):
        assert watch.refresh.may_ask
        watch.refresh.want_names([ORDERS.bytes])
        view = await watch.next()
    assert view.topic_name(ORDERS.bytes) == ""
    assert watch.refresh.hides(ORDERS.bytes)
    assert not watch.refresh.hides(bytes(16))
    assert len([record for record in caplog.records if str(ORDERS) in record.getMessage()]) == 1


async def test_names_of_deleted_topics_do_not_add_up(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "NAMES_AT_MOST", 3)
    await watch.next()
    watch.refresh._topic_names.update({bytes([number] * 16): "deleted" for number in range(10, 13)})
    watch.refresh.want_names([ORDERS.bytes])
    view = await watch.next()
    assert view.topic_name(ORDERS.bytes) == "orders"
    assert list(watch.refresh._topic_names) == [ORDERS.bytes]


async def test_ids_that_no_broker_responds_to_do_not_add_up(
    broker: MetadataBroker, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watch.next()
    watch.refresh.want_names(number.to_bytes(16, "big") for number in range(refresh.WANTED_AT_MOST + 1))
    assert not watch.refresh._wanted_ids
    await watch.next()
    assert broker.asked[-1].topics is None


@pytest.mark.parametrize("fault", ["gone", "hangs"])
async def test_a_broker_that_fails_does_not_make_the_cluster_unavailable(
    broker: MetadataBroker, fault: str
) -> None:
    async with MetadataBroker() as other:
        cluster = ClusterRefresh(
            "clients", ClusterAccess((broker.address, other.address), 3.0), lambda view: None
        )
        problems: list[str] = []

        def another_turn() -> object:
            problems.append(cluster.problem)
            return other.asked

        task = asyncio.get_running_loop().create_task(cluster.run())
        try:
            await reached(lambda: not cluster.problem, "a response")
            broker.silent = fault == "hangs"
            if fault == "gone":
                broker.disconnect()
            cluster.request_refresh()
            await reached(another_turn, "another broker's turn")
            assert not any(problems)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            cluster.close()


async def test_a_connection_is_replaced_before_its_session_ends(
    broker: MetadataBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker closes it at the next request (connections.max.reauth.ms), which would look like a failure."""
    access = ClusterAccess((broker.address,), 5.0)
    cluster = ClusterRefresh("clients", access, lambda view: None)
    task = asyncio.get_running_loop().create_task(cluster.run())
    try:
        await reached(lambda: cluster._broker is not None and not cluster.problem, "a response")
        first = cluster._broker
        assert first is not None
        first.session_seconds = 3600.0
        assert not first.session_ends
        first.session_seconds = 1e-6
        assert first.session_ends
        with caplog.at_level(logging.INFO):
            cluster.request_refresh()
            await reached(lambda: cluster._broker is not first and len(broker.asked) > 1, "a new one")
        assert (caplog.messages, access.failed) == ([], set())
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        cluster.close()


async def test_brokers_that_do_not_respond_do_not_hide_one_that_does(broker: MetadataBroker) -> None:
    silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
    addresses = (*(server.getsockname() for server in silent), broker.address)
    cluster = ClusterRefresh("clients", ClusterAccess(addresses, 0.2), lambda view: None)
    task = asyncio.get_running_loop().create_task(cluster.run())
    try:
        async with asyncio.timeout(SECONDS):
            await cluster.responded.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        cluster.close()
        for server in silent:
            server.close()


async def test_brokers_at_addresses_that_upstream_hosts_does_not_allow(
    broker: MetadataBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "RETRY_SECONDS", 0.01)
    hosts = BrokerHosts(("kafka-*",), (broker.address,))
    views: list[ClusterView] = []
    cluster = ClusterRefresh(
        "clients", ClusterAccess((broker.address,), 5.0, Access(hosts=hosts)), lambda view: None, views.append
    )
    running = asyncio.get_running_loop().create_task(cluster.run())
    broker.others = {2: ("kafka-2", 9092), 3: ("169.254.169.254", 80)}
    try:
        await reached(lambda: bool(views), "a view")
        assert sorted(views[-1].nodes) == [1, 2]
        broker.others = {1: ("127.0.0.1", 70_000), 2: ("169.254.169.254", 80)}
        cluster.want_all_names()
        await reached(lambda: len(broker.asked) > 1, "a request")
        cluster.request_refresh()
        assert {node: (at.host, at.port) for node, at in cluster.view.nodes.items()} == {
            1: broker.address,
            2: ("kafka-2", 9092),
        }
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        cluster.close()


async def test_a_cluster_of_which_upstream_hosts_allows_no_broker(broker: MetadataBroker) -> None:
    cluster = ClusterRefresh(
        "clients",
        ClusterAccess((broker.address,), 5.0, Access(hosts=BrokerHosts(("kafka-*",), (broker.address,)))),
        lambda view: None,
    )
    broker.others = {1: ("kafka.elsewhere", 9092)}
    running = asyncio.get_running_loop().create_task(cluster.run())
    try:
        await reached(lambda: "upstream.hosts" in cluster.problem, "the problem")
        assert "kafka.elsewhere:9092" in cluster.problem
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        cluster.close()
