"""ClusterRefresh: what it asks a broker for, how often, and what its views hold."""

import asyncio
import io
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final
from uuid import UUID

import pytest
from kio.schema.api_versions.v0 import response as api_versions
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import response as metadata
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.request_header.v1.header import RequestHeader as OldHeader
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32
from kio.static.protocol import ResponsePayload

from proxy.quota.cluster_view import ClusterView, Partition
from proxy.upstream import refresh
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.api_keys import API_VERSIONS

ORDERS: Final = UUID(int=1)


class Broker:
    """Answers ApiVersions and Metadata; knows one topic, `orders`."""

    def __init__(self) -> None:
        self.asked: list[MetadataRequest] = []
        self.partitions = [(1, (1, 2), (1,)), (-1, (2, 3), (2,))]
        """Leader, replicas and ISR."""
        self.fault = ErrorCode.none

    async def __aenter__(self) -> "Broker":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                writer.write(self._answer(frame))
        except EOFError:
            writer.close()

    def _answer(self, frame: bytes) -> bytes:
        answer: ResponsePayload
        if int.from_bytes(frame[:2], "big") == API_VERSIONS:
            header, _ = entity_reader(OldHeader)(frame, 0)
            newest = api_versions.ApiVersion(api_key=i16(3), min_version=i16(0), max_version=i16(12))
            answer = api_versions.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=(newest,))
        else:
            header, at = entity_reader(MetadataRequest.__header_schema__)(frame, 0)
            self.asked.append(entity_reader(MetadataRequest)(frame, at)[0])
            answer = self._metadata()
        out = io.BytesIO()
        schema = answer.__header_schema__
        entity_writer(schema)(out, schema(correlation_id=header.correlation_id))
        entity_writer(type(answer))(out, answer)
        return len(out.getvalue()).to_bytes(4, "big") + out.getvalue()

    def _metadata(self) -> metadata.MetadataResponse:
        host, port = self.address
        topic = metadata.MetadataResponseTopic(
            error_code=self.fault,
            name=TopicName("orders"),
            topic_id=ORDERS,
            partitions=tuple(
                metadata.MetadataResponsePartition(
                    error_code=ErrorCode.none,
                    partition_index=i32(number),
                    leader_id=BrokerId(leader),
                    replica_nodes=tuple(map(BrokerId, replicas)),
                    isr_nodes=tuple(map(BrokerId, isr)),
                )
                for number, (leader, replicas, isr) in enumerate(self.partitions)
            ),
        )
        node = metadata.MetadataResponseBroker(node_id=BrokerId(1), host=host, port=i32(port))
        return metadata.MetadataResponse(
            throttle_time=timedelta(0),
            brokers=(node,),
            cluster_id="c",
            topics=(topic,) if self.asked[-1].topics != () else (),
        )


class Watch:
    """A running refresh, and the views that it gave."""

    def __init__(self, broker: Broker) -> None:
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
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        yield broker


@pytest.fixture
async def watch(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watch]:
    """It asks again only when something makes it."""
    monkeypatch.setattr(refresh, "REFRESH_SECONDS", 1000.0)
    watch = Watch(broker)
    yield watch
    await watch.end()


async def test_partitions_are_not_asked_for_unless_wanted(broker: Broker, watch: Watch) -> None:
    assert not watch.refresh.answered.is_set()
    view = await watch.next()
    assert watch.refresh.answered.is_set()
    assert [asked.topics for asked in broker.asked] == [()]
    assert not view.has_partitions
    assert view.partitions == {}
    assert view.topic_name(ORDERS.bytes) == ""


async def test_wanted_partitions_are_there_at_once(broker: Broker, watch: Watch) -> None:
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


async def test_names_of_all_topics_are_asked_for_at_the_usual_pace(broker: Broker, watch: Watch) -> None:
    await watch.next()
    watch.refresh.want_topics = True
    watch.refresh.request_refresh()
    view = await watch.next()
    assert broker.asked[-1].topics is None
    assert view.topic_name(ORDERS.bytes) == "orders"
    assert watch.views.empty()


async def test_names_of_all_topics_are_asked_for_once(broker: Broker, watch: Watch) -> None:
    await watch.next()
    watch.refresh.want_all_names()
    view = await watch.next()
    assert broker.asked[-1].topics is None
    assert view.topic_name(ORDERS.bytes) == "orders"
    watch.refresh.request_refresh()
    await watch.next()
    assert broker.asked[-1].topics == ()


async def test_partitions_are_kept_fresh(
    broker: Broker, watch: Watch, monkeypatch: pytest.MonkeyPatch
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
    broker: Broker, watch: Watch
) -> None:
    await watch.next()
    broker.fault = ErrorCode.topic_authorization_failed
    watch.refresh.want_partitions = True
    view = await watch.next()
    assert view.has_partitions
    assert view.partitions == {}


async def test_a_name_is_asked_for_by_id(broker: Broker, watch: Watch) -> None:
    await watch.next()
    watch.refresh.want_names([ORDERS.bytes])
    assert watch.refresh.awaits_name(ORDERS.bytes)
    view = await watch.next()
    assert not watch.refresh.awaits_name(ORDERS.bytes)
    topics = broker.asked[-1].topics
    assert topics is not None
    assert [topic.topic_id for topic in topics] == [ORDERS]
    assert view.topic_name(ORDERS.bytes) == "orders"


def test_a_partition_says_where_it_is() -> None:
    partition = Partition(1, (1, 2, 3), frozenset([1, 3]))
    view = ClusterView("c", {}, {}, {("orders", 0): partition}, 5.0)
    assert view.partitions["orders", 0] is partition
    assert view.as_of == 5.0
