"""Requests of the proxy's own, to a fake broker on a socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.errors import UpstreamUnavailable
from proxy.upstream.partition_counts import (
    DEFAULT_SECONDS,
    TOPICS_AT_A_TIME,
    KeptConnection,
    PartitionCounts,
    TopicDefaults,
)
from proxy.upstream.partitions import Partitions
from proxy.wire.apis.api import read_request_header
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import (
    framed,
    read_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.messages.mutations import topic_id
from tests.support.messages.requests import build, metadata, part

METADATA, DESCRIBE_CONFIGS = 3, 32
SECONDS = 5.0
NO_TIME = timedelta(0)


class Broker:
    """Knows topics (name: partitions) and num.partitions; `ends`: so many questions end the connection."""

    def __init__(self) -> None:
        self.topics = {"a": 3, "b": 5}
        self.code = "unknown_topic_or_partition"
        self.num_partitions = "6"
        self.creates = "true"
        self.ends = 0
        self.silent = False
        self.questions: list[Any] = []
        self.connections = 0
        self.open: list[tuple[asyncio.StreamWriter, asyncio.Task[None]]] = []
        self.asked = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.asked.set()
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        self.open.append((writer, task))
        try:
            while size := int.from_bytes(await reader.readexactly(4), "big"):
                frame = framed(await reader.readexactly(size))
                if self.ends:
                    self.ends -= 1
                    break
                if self.silent:
                    continue
                writer.write(self.respond(frame))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    def respond(self, frame: bytes) -> bytes:
        header = read_request_header(Reader([frame], 4))
        request = read_frame(request_type(header.api_key, header.api_version), frame)
        self.questions.append(request)
        schema = response_type(header.api_key, header.api_version)
        message = (
            self.metadata(schema, request) if header.api_key == METADATA else self.configs(schema, request)
        )
        return response_frame(message, header.correlation_id)

    def metadata(self, schema: type[Any], request: Any) -> Any:
        assert not request.allow_auto_topic_creation
        by_id = {topic_id(name): name for name in self.topics}
        topics = []
        for asked in request.topics:
            name: Any = asked.name or by_id.get(asked.topic_id)
            known = name in self.topics
            code = "none" if known else (self.code if name else "unknown_topic_id")
            partitions = tuple(
                part(
                    schema,
                    "MetadataResponsePartition",
                    error_code=ErrorCode.none,
                    partition_index=n,
                    leader_id=1,
                )
                for n in range(self.topics.get(name, 0))
            )
            topics.append(
                part(
                    schema,
                    "MetadataResponseTopic",
                    name=name,
                    topic_id=topic_id(name) if known else asked.topic_id,
                    error_code=ErrorCode[code],
                    partitions=partitions,
                )
            )
        return build(
            schema, throttle_time=NO_TIME, brokers=(), cluster_id="c", controller_id=1, topics=tuple(topics)
        )

    def configs(self, schema: type[Any], request: Any) -> Any:
        [resource] = request.resources
        assert (resource.resource_type, resource.resource_name) == (4, "1")
        code = ErrorCode.none if self.num_partitions else ErrorCode.cluster_authorization_failed
        configs = tuple(
            part(
                schema,
                "DescribeConfigsResourceResult",
                name=name,
                value=self.num_partitions if name == "num.partitions" else self.creates,
                read_only=False,
                is_sensitive=False,
                synonyms=(),
                documentation=None,
            )
            for name in resource.configuration_keys
            if self.num_partitions
        )
        result = part(
            schema,
            "DescribeConfigsResult",
            error_code=code,
            error_message=None,
            resource_type=4,
            resource_name="1",
            configs=configs,
        )
        return build(schema, throttle_time=NO_TIME, results=(result,))


@asynccontextmanager
async def served(broker: Broker) -> AsyncIterator[tuple[str, int]]:
    """The broker's address."""
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()
        for writer, _ in broker.open:
            writer.close()
        await asyncio.gather(*[task for _, task in broker.open])
        await server.wait_closed()


@asynccontextmanager
async def counting(broker: Broker) -> AsyncIterator[PartitionCounts]:
    async with served(broker) as address:
        counts = PartitionCounts(lambda node_id: address if node_id == 1 else None, SECONDS)
        try:
            yield counts
        finally:
            counts.close()


async def test_topics_by_name_and_by_id() -> None:
    broker = Broker()
    async with counting(broker) as counts:
        found = await counts.topics(1, ["a", "gone", topic_id("b").bytes, topic_id("never").bytes])
    assert found == {
        "a": Partitions(3, topic_id("a").bytes),
        topic_id("b").bytes: Partitions(5, topic_id("b").bytes),
    }
    assert [len(question.topics) for question in broker.questions] == [2, 2]


async def test_ids_by_name() -> None:
    broker = Broker()
    async with counting(broker) as counts:
        assert await counts.topic_ids(1, ["a", "gone"]) == {"a": topic_id("a").bytes, "gone": None}
        broker.code = "topic_authorization_failed"
        assert await counts.topic_ids(1, ["a", "gone"]) == {"a": topic_id("a").bytes}


async def test_no_topics_send_no_request() -> None:
    """To ask for none would be to ask for all."""
    broker = Broker()
    async with counting(broker) as counts:
        assert await counts.topics(1, []) == {}
    assert broker.questions == []


async def test_many_topics_are_several_requests() -> None:
    broker = Broker()
    names = [f"topic-{number}" for number in range(TOPICS_AT_A_TIME)]
    async with counting(broker) as counts:
        assert list(await counts.topics(1, [*names, "a"])) == ["a"]
    assert [len(question.topics) for question in broker.questions] == [TOPICS_AT_A_TIME, 1]


async def test_default_is_cached() -> None:
    broker = Broker()
    async with counting(broker) as counts:
        assert await counts.default(1, 100.0) == TopicDefaults(6, creates=True)
        broker.num_partitions, broker.creates = "9", "false"
        assert await counts.default(1, 100.0 + DEFAULT_SECONDS - 0.1) == TopicDefaults(6, creates=True)
        assert await counts.default(1, 100.0 + DEFAULT_SECONDS) == TopicDefaults(9, creates=False)


async def test_kafka_default_if_the_broker_does_not_describe_it(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    broker.num_partitions = ""
    async with counting(broker) as counts:
        assert await counts.default(1, 100.0) == TopicDefaults(1, creates=True)
        assert await counts.default(1, 101.0) == TopicDefaults(1, creates=True)
    [record] = caplog.records
    assert "cluster_authorization_failed" in record.message


async def test_the_threads_of_a_broker() -> None:
    broker = Broker()
    broker.creates = "8"  # the value of all configs but num.partitions
    async with counting(broker) as counts:
        assert await counts.threads(1) == 16
        broker.num_partitions = ""
        with pytest.raises(UpstreamUnavailable, match="cluster_authorization_failed"):
            await counts.threads(1)


async def test_unknown_broker() -> None:
    async with counting(Broker()) as counts:
        with pytest.raises(UpstreamUnavailable, match=r"broker 2\b"):
            await counts.topics(2, ["a"])


async def test_moved_broker_is_connected_at_its_new_address() -> None:
    old, new = Broker(), Broker()
    new.topics = {"a": 99}
    async with served(old) as before, served(new) as after:
        address = before
        counts = PartitionCounts(lambda node_id: address, SECONDS)
        await counts.topics(1, ["a"])
        address = after
        assert (await counts.topics(1, ["a"]))["a"].count == 99
        counts.close()


async def test_one_connection_serves_many_requests() -> None:
    broker = Broker()
    async with counting(broker) as counts:
        found = await asyncio.gather(*[counts.topics(1, ["a"]) for _ in range(10)])
    assert [list(topics) for topics in found] == [["a"]] * 10
    assert broker.connections == 1


async def ask(line: KeptConnection) -> Any:
    return await line.ask(metadata(["a"]), response_type(METADATA, 12))


async def test_ended_connection_is_opened_again() -> None:
    broker = Broker()
    async with served(broker) as address:
        line = KeptConnection(address[0], address[1], SECONDS)
        await ask(line)
        broker.ends = 1
        assert (await ask(line)).topics[0].name == "a"
        line.close()
    assert broker.connections == 2


async def test_broker_that_always_closes_the_connection() -> None:
    broker = Broker()
    async with served(broker) as address:
        line = KeptConnection(address[0], address[1], SECONDS)
        broker.ends = 1
        with pytest.raises(UpstreamUnavailable, match=f":{address[1]}: "):
            await ask(line)
        await ask(line)
        broker.ends = 2
        with pytest.raises(UpstreamUnavailable):
            await ask(line)
        line.close()


async def test_unreachable_broker() -> None:
    async with served(Broker()) as address:
        pass
    with pytest.raises(UpstreamUnavailable):
        await ask(KeptConnection(address[0], address[1], SECONDS))


async def test_late_response_is_discarded() -> None:
    broker = Broker()
    broker.silent = True
    async with served(broker) as address:
        line = KeptConnection(address[0], address[1], 0.05)
        with pytest.raises(UpstreamUnavailable):
            await ask(line)
        broker.silent = False
        patient = KeptConnection(address[0], address[1], SECONDS)
        assert (await ask(patient)).topics[0].name == "a"
        patient.close()
    assert broker.connections == 2


async def test_cancelled_request_closes_the_connection() -> None:
    broker = Broker()
    async with served(broker) as address:
        line = KeptConnection(address[0], address[1], SECONDS)
        broker.silent = True
        asking = asyncio.get_running_loop().create_task(ask(line))
        await broker.asked.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        broker.silent = False
        assert (await ask(line)).topics[0].name == "a"
        line.close()
    assert broker.connections == 2
