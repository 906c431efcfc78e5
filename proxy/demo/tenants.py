"""The demo's tenants: ordinary Kafka clients, which the quotas distinguish by their client ids.

Each has its own topic, and sends or reads as fast as it can.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

PRODUCER: Final = "producer_byte_rate"
CONSUMER: Final = "consumer_byte_rate"

_RECORD: Final = bytes((64 << 10) - 128)
"""With the header of its batch just under 64 KiB, so that whole batches fill a Fetch response whose size a
quota limits. A partial batch at its end would count, but be useless to the consumer."""
_STOP_SECONDS: Final = 3.0
"""The longest time that the stop of a client may take."""


@dataclass(slots=True)
class Flow:
    """One tenant's producer or consumer."""

    tenant: str
    """Its client id, and the name of its topic."""
    key: str
    """The kind of its quota: PRODUCER or CONSUMER."""
    limit: int | None
    """Bytes per second; None without a quota."""
    bytes: int = 0
    """Bytes of records that were acknowledged or received so far."""

    @property
    def verb(self) -> str:
        return "produces" if self.key == PRODUCER else "consumes"

    def __str__(self) -> str:
        return f"{self.tenant} {self.verb}"

    async def run(self, bootstrap: str) -> None:
        """Produce or consume until cancelled. Raises aiokafka's KafkaError."""
        if self.key == PRODUCER:
            await self._produce(bootstrap)
        else:
            await self._consume(bootstrap)

    async def _produce(self, bootstrap: str) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=self.tenant)
        async with _started(producer):
            while True:
                await producer.send_and_wait(self.tenant, _RECORD)
                self.bytes += len(_RECORD)

    async def _consume(self, bootstrap: str) -> None:
        consumer = AIOKafkaConsumer(
            self.tenant,
            bootstrap_servers=bootstrap,
            client_id=self.tenant,
            group_id=self.tenant,
            auto_offset_reset="earliest",
        )
        async with _started(consumer):
            async for record in consumer:
                self.bytes += len(record.value)


@asynccontextmanager
async def _started(client: AIOKafkaProducer | AIOKafkaConsumer) -> AsyncIterator[None]:
    """Start the client, and stop it within _STOP_SECONDS: it would wait for a cluster that may be gone for
    good.
    """
    try:
        await client.start()
        yield
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await client.stop()


async def make_topics(bootstrap: str, tenants: Iterable[str]) -> None:
    """Create a topic with one partition for each tenant."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, client_id="demo")
    await admin.start()
    try:
        await admin.create_topics([NewTopic(tenant, 1, 1) for tenant in tenants])
    finally:
        await admin.close()
