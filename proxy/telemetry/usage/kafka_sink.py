"""KafkaSink: usage events to a topic of the cluster."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from proxy.errors import UpstreamUnavailable
from proxy.security.access import PLAINTEXT, Access
from proxy.telemetry.usage.events import Encoded
from proxy.telemetry.usage.sink import Sink, SinkUnavailable
from proxy.upstream.topic_setup import TopicPlan, prepare_topic

CLIENT_ID: Final = "quota-proxy"
REQUEST_SECONDS: Final = 10.0
"""How long a batch of events may take; then all of it is sent again, so that some may come twice."""
START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 2.0
AT_A_TIME: Final = 100
"""Events that are handed to aiokafka before the event loop gets a turn."""
BATCH_BYTES: Final = 256 << 10
PLAN: Final = TopicPlan(partitions=4)
"""Where the topic is missing; one that is there may have any shape."""


class KafkaSink(Sink):
    """Makes the topic where it is missing."""

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        topic: str,
        connect_seconds: float,
        access: Access = PLAINTEXT,
    ) -> None:
        super().__init__("kafka")
        self._bootstrap: Final = tuple(bootstrap)
        self._servers: Final = [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in bootstrap
        ]
        self._topic: Final = topic
        self._connect_seconds: Final = connect_seconds
        self._access: Final = access
        self._producer: Any = None
        # Of a cluster that is away it says dozens of lines a second; `problem` says it once.
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
            why = str(error) or f"no answer in {REQUEST_SECONDS:g} s"
            raise SinkUnavailable(f"topic {self._topic} cannot be written to: {why}") from error

    async def _started(self) -> Any:
        if self._producer is None:
            await prepare_topic(
                self._bootstrap,
                self._topic,
                self._connect_seconds,
                create=True,
                plan=PLAN,
                access=self._access,
            )
            producer = AIOKafkaProducer(
                bootstrap_servers=self._servers,
                client_id=CLIENT_ID,
                acks="all",
                max_batch_size=BATCH_BYTES,
                request_timeout_ms=int(REQUEST_SECONDS * 1000),
                **self._access.for_aiokafka(),
            )
            self._producer = producer
            await producer.start()
        return self._producer

    async def release(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        with suppress(TimeoutError, KafkaError):
            async with asyncio.timeout(STOP_SECONDS):
                await producer.stop()
