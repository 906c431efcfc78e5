"""KafkaSink: writes usage events to a topic of the cluster."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import KafkaError

from proxy.errors import UpstreamUnavailable
from proxy.tasks import Tasks
from proxy.telemetry.usage.events import Encoded
from proxy.telemetry.usage.sink import Sink, SinkUnavailable
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.kafka_clients import kafka_producer
from proxy.upstream.topic_setup import TopicPlan, prepare_topic

CLIENT_ID: Final = "quota-proxy"
REQUEST_SECONDS: Final = 10.0
"""The timeout of a batch. The whole batch is then sent again, so some of its events may be delivered
twice."""
START_SECONDS: Final = 30.0
"""The timeout of the first connection, which may have to create the topic."""
STOP_SECONDS: Final = 2.0
"""How long to wait for a producer that stops. It waits for the responses to its requests, for REQUEST_SECONDS
at most.
"""
AT_A_TIME: Final = 100
"""Events that are passed to aiokafka before the event loop runs other work."""
BATCH_BYTES: Final = 256 << 10
"""The size of a partition's batch. Kafka's default of 16 KiB would take a request per 50 events; brokers
accept 1 MiB.
"""
PLAN: Final = TopicPlan(partitions=4)
"""How to create the topic if it does not exist; an existing topic may have any shape."""


class KafkaSink(Sink):
    """Delivers events to a topic, which it creates if it does not exist."""

    def __init__(
        self,
        cluster: ClusterAccess,
        topic: str,
    ) -> None:
        super().__init__("kafka")
        self._topic: Final = topic
        self._cluster: Final = cluster
        self._producer: Any = None
        self._stopping: Final = Tasks()
        # aiokafka logs dozens of lines a second while the cluster is unreachable; `problem` is logged once.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    async def deliver(self, batch: Sequence[Encoded]) -> None:
        try:
            async with asyncio.timeout(START_SECONDS):
                producer = await self._started()
            async with asyncio.timeout(REQUEST_SECONDS):
                sent = []
                for number, event in enumerate(batch, 1):
                    sent.append(await producer.send(self._topic, event.value, event.key))
                    if number % AT_A_TIME == 0:
                        await asyncio.sleep(0)
                await asyncio.gather(*sent)
        except (KafkaError, UpstreamUnavailable, OSError, EOFError) as error:
            await self.release()
            why = str(error) or f"no response within {REQUEST_SECONDS:g} s"
            raise SinkUnavailable(f"cannot write to topic {self._topic}: {why}") from error

    async def _started(self) -> Any:
        if self._producer is None:
            await prepare_topic(self._cluster, self._topic, create=True, plan=PLAN)
            producer = kafka_producer(
                self._cluster,
                client_id=CLIENT_ID,
                acks="all",
                max_batch_size=BATCH_BYTES,
                request_timeout_ms=int(REQUEST_SECONDS * 1000),
            )
            self._producer = producer
            await producer.start()
        return self._producer

    async def release(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        # Not cancelled after STOP_SECONDS: aiokafka's stop() would leave its tasks and connections.
        await asyncio.wait([self._stopping.start(_stop(producer))], timeout=STOP_SECONDS)


async def _stop(producer: Any) -> None:
    with suppress(KafkaError):
        await producer.stop()
