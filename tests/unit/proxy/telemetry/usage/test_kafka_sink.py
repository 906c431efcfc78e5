"""KafkaSink on a broker in memory; tests/integration/telemetry/test_usage.py has a real topic."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from kio.schema.errors import ErrorCode

from proxy.telemetry.usage import kafka_sink
from proxy.telemetry.usage.events import Encoded
from proxy.telemetry.usage.kafka_sink import KafkaSink
from proxy.telemetry.usage.sink import SinkUnavailable
from proxy.upstream.cluster_access import ClusterAccess
from proxy.wire.api_keys import PRODUCE
from tests.support.process.log_broker import LogBroker
from tests.support.waiting import reached


@pytest.fixture
async def broker() -> AsyncIterator[LogBroker]:
    async with LogBroker("used", create=False) as broker:
        yield broker


@pytest.fixture
async def sink(broker: LogBroker) -> AsyncIterator[KafkaSink]:
    sink = KafkaSink(ClusterAccess((broker.address,), 5.0), broker.topic)
    yield sink
    await sink.release()


def events(count: int) -> list[Encoded]:
    return [Encoded(b"key", b"%d" % number) for number in range(count)]


async def test_the_topic_is_created_and_gets_the_events(broker: LogBroker, sink: KafkaSink) -> None:
    await sink.deliver(events(250))
    assert broker.partitions == 4
    assert broker.values == [event.value for event in events(250)]
    await sink.deliver(events(1))
    assert len(broker.values) == 251


async def test_an_existing_topic_is_used_as_it_is(broker: LogBroker, sink: KafkaSink) -> None:
    broker.create()
    broker.append([(b"key", b"old")])
    await sink.deliver(events(1))
    assert broker.values == [b"old", b"0"]


async def test_a_rejected_batch_can_be_delivered_again(broker: LogBroker, sink: KafkaSink) -> None:
    broker.produce_error = ErrorCode.topic_authorization_failed
    with pytest.raises(SinkUnavailable, match="topic used"):
        await sink.deliver(events(1))
    assert broker.values == []
    broker.produce_error = ErrorCode.none
    await sink.deliver(events(1))
    assert broker.values == [b"0"]


async def test_a_batch_without_a_response_fails_in_time(
    broker: LogBroker, sink: KafkaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The start of the producer has to end within this time, too.
    monkeypatch.setattr(kafka_sink, "REQUEST_SECONDS", 2.0)
    monkeypatch.setattr(kafka_sink, "STOP_SECONDS", 0.1)
    broker.silent.add(PRODUCE)
    with pytest.raises(SinkUnavailable, match="within 2 s"):
        await sink.deliver(events(1))
    await reached(lambda: broker.connections == 0, "the end of the connections")


async def test_a_failed_delivery_leaves_no_producer_running(
    broker: LogBroker, sink: KafkaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sink retries once a second: each producer that is left keeps its tasks and connections."""
    monkeypatch.setattr(kafka_sink, "REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(kafka_sink, "STOP_SECONDS", 0.1)
    broker.produce_error = ErrorCode.not_leader_or_follower
    # The last request of the batch has no response when its time is over.
    asyncio.get_running_loop().call_later(0.7, broker.silent.add, PRODUCE)
    with pytest.raises(SinkUnavailable):
        await sink.deliver(events(1))
    await reached(lambda: not aiokafka_tasks(), "the end of the producer's tasks")
    await reached(lambda: broker.connections == 0, "the end of the connections")


def aiokafka_tasks() -> list[str]:
    """The names of aiokafka's running functions."""
    running = [task.get_coro() for task in asyncio.all_tasks()]
    return [str(work) for work in running if "Sender" in str(work) or "AIOKafka" in str(work)]


async def test_an_unreachable_cluster() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        port = bound.getsockname()[1]
        sink = KafkaSink(ClusterAccess((("127.0.0.1", port),), 1.0), "used")
        with pytest.raises(SinkUnavailable, match=rf"topic used: 127\.0\.0\.1:{port}"):
            await sink.deliver(events(1))
    await sink.release()
    assert (sink.name, sink.delivered, sink.lost) == ("kafka", 0, 0)
