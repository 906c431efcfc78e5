"""Large messages, empty topics, and very many partitions."""

import asyncio
import sys
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaProducer

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Aiokafka, Client, Confluent, KafkaPython, poll_all
from tests.support.kafka.raw_client import RawClient
from tests.support.kafka.topics import drop_topic, make_topic
from tests.support.messages.numbered import Got, check_all_there, number, value
from tests.support.messages.requests import batch, fetch, produce
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
MEBI = 1 << 20
LARGE = 10 * MEBI
LIMIT = 11 * MEBI
LARGE_CLIENTS: dict[str, Callable[[], Client]] = {
    "confluent-kafka": lambda: Confluent(message_max_bytes=LIMIT),
    "aiokafka": lambda: Aiokafka(max_request_size=LIMIT),
    "kafka-python": lambda: KafkaPython(max_request_size=LIMIT),
}
MOST_MEMORY = 12 * MEBI
"""What a few connections may take, whatever the size of the messages."""


@pytest.mark.parametrize("name", LARGE_CLIENTS)
def test_large_messages(name: str, kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, f"large-{name}", max_message_bytes=LIMIT)
    client = LARGE_CLIENTS[name]()
    client.send(proxy.bootstrap, f"large-{name}", 3, size=LARGE)
    got = client.read(proxy.bootstrap, f"large-{name}", 3)
    check_all_there(got, 3)
    assert all(message.value == value(count, LARGE) for count, message in enumerate(got))


def test_large_messages_with_java(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "large-java", max_message_bytes=LIMIT)
    to_topic = ("--bootstrap-server", proxy.bootstrap, "--topic", "large-java", "--num-records", "5")
    limits = ("--command-property", f"max.request.size={LIMIT}", "buffer.memory=67108864")
    sent = kafka.run_tool(
        "kafka-producer-perf-test", *to_topic, "--record-size", str(LARGE), "--throughput", "-1", *limits
    )
    assert "5 records sent" in sent.stdout
    read = kafka.run_tool("kafka-consumer-perf-test", *to_topic, "--hide-header", "--timeout", "30000")
    assert int(read.stdout.strip().splitlines()[-1].split(",")[4]) == 5


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_memory_does_not_grow_with_messages(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """Memory does not grow with a consumer that requests much and reads nothing, either."""
    make_topic(kafka, "bounded", max_message_bytes=LIMIT)
    proxy = run_proxy(kafka.bootstrap)
    records = batch([bytes(LARGE)])
    with RawClient(proxy.broker_port(1)) as client:
        client.ask(fetch("bounded"))
        before = proxy.peak_memory
        for _ in range(5):
            client.ask(produce("bounded", records))
    with RawClient(proxy.broker_port(1)) as slow:
        slow.send(fetch("bounded", max_bytes=5 * LARGE))
        seen = -1.0

        def stands_still() -> bool:
            nonlocal seen
            last, seen = seen, proxy.metric("quota_proxy_bytes_total", direction="out")
            return seen == last > MEBI

        wait_until(stands_still, "back pressure")
        assert seen < 2 * LARGE, "the broker is not read from while the client does not read"
        assert slow.receive().size > 5 * LARGE
    assert proxy.peak_memory - before < MOST_MEMORY


def test_an_empty_topic(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "empty", partitions=3)
    nothing = ("--from-beginning", "--timeout-ms", "2000")
    read = kafka.run_tool(
        "kafka-console-consumer",
        "--bootstrap-server",
        proxy.bootstrap,
        "--topic",
        "empty",
        *nothing,
        check=False,
    )
    assert read.stdout == ""
    consumer = Confluent().consumer(proxy.bootstrap)
    consumer.subscribe(["empty"])
    wait_until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 3, "an assignment")
    before = proxy.metric("quota_proxy_requests_total", api="Fetch")
    got: list[Got] = []
    assert poll_all(consumer, got, 1.5) == 0
    assert proxy.metric("quota_proxy_requests_total", api="Fetch") - before < 10, "it waits at the broker"
    Confluent().send(proxy.bootstrap, "empty", 5)
    wait_until(lambda: poll_all(consumer, got) == 5, "messages at last")
    consumer.close()


def test_a_thousand_partitions(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """aiokafka puts many partitions into one request; librdkafka sends a request for each."""
    make_topic(kafka, "thousand", partitions=1000)
    some = range(0, 1000, 4)

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=proxy.bootstrap) as producer:
            await asyncio.gather(
                *[
                    await producer.send("thousand", value(partition), partition=partition)
                    for partition in some
                ]
            )

    asyncio.run(send())
    got = Confluent().read(proxy.bootstrap, "thousand", len(some))
    assert sorted(number(message.value) for message in got) == list(some)
    assert all(number(message.value) == message.partition for message in got)
    drop_topic(kafka, "thousand")


def test_acks_0(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, "acks-0", partitions=3)
    client = Confluent(acks=0, enable_idempotence=False)
    client.send(proxy.bootstrap, "acks-0", 2000)
    check_all_there(client.read(proxy.bootstrap, "acks-0", 2000), 2000)
