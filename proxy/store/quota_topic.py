"""QuotaTopic: the compacted topic through which the proxies of a cluster share quotas that tools set.

The proxy reads the topic to its end at startup, and then follows it. A change of this proxy takes effect when
its own reader has read it back.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from proxy.errors import UpstreamUnavailable
from proxy.store.consumers import follow, stop_consumer
from proxy.store.quota_records import Place, Setting, Unreadable, decode, encode
from proxy.store.quota_store import QuotaStore, StoreUnavailable
from proxy.store.skipped_records import SkippedRecords
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.kafka_clients import kafka_consumer, kafka_producer, leader_address
from proxy.upstream.topic_setup import grant, prepare_topic

log = logging.getLogger(__name__)
CLIENT_ID: Final = "quota-proxy"
PROBE_SECONDS: Final = 1.0
"""Interval of the requests for the end offset, which show whether the topic is available."""
END_OFFSET_SECONDS: Final = 5.0
"""Timeout of a request for the end offset, and of closing the producer."""
REQUEST_SECONDS: Final = 5.0
"""Timeout of a request to the cluster, and of a change until this proxy has read it back."""
METADATA_SECONDS: Final = 5.0
"""How often the producer requests metadata. All brokers may have moved until the next change, and an attempt
to write to a former leader takes REQUEST_SECONDS.
"""
RECORDS_AT_A_TIME: Final = 200
"""Records to process before yielding to the event loop: enough to be fast, and a few ms of work."""
BATCH_BYTES: Final = 256 << 10
"""The producer's batch.size: an import of quotas writes thousands of records at once."""


class QuotaTopic:
    """run() follows the topic; append() writes to it."""

    def __init__(
        self,
        cluster: ClusterAccess,
        topic: str,
        store: QuotaStore,
        tasks: Tasks,
    ) -> None:
        self.problem = f"topic {topic} is not loaded yet"
        """Why the topic cannot be followed at the moment; empty if it can."""
        self.write_problem = ""
        """Why the last change could not be written, if only a right of the proxy can mend it."""
        self.loaded: Final = asyncio.Event()
        """Set after the topic was read to its end for the first time."""
        self.lag = 0
        """Number of unread records, as of the last check."""
        self.skipped: Final = SkippedRecords(topic)
        """The records that cannot be read or applied."""
        self._partition: Final = TopicPartition(topic, 0)
        self._store: Final = store
        self._tasks: Final = tasks
        self._cluster: Final = cluster
        self._may_read = True
        """Whether no recent fetch was rejected for a missing right."""
        self._topic_id: UUID | None = None
        """The id of the topic that `_position` refers to; None: the topic has to be read from its start."""
        self._position = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._producer: Any = None
        self._one_at_a_time: Final = asyncio.Lock()
        """A change that fails abandons the producer with all pending records: changes do not share it."""
        # aiokafka logs dozens of lines a second while a cluster is unavailable; `problem` is logged once.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    @property
    def topic(self) -> str:
        name: str = self._partition.topic
        return name

    # Reading

    async def run(self) -> None:
        """Follow the topic; never returns."""
        await follow(self._follow, self._set_problem, self._tasks)

    async def _follow(self) -> None:
        """Follow the topic until it is unavailable."""
        try:
            await self._connect_and_read()
        except TopicAuthorizationFailedError:
            self._may_read = False
            why = grant(self.topic, "Describe, Read and Write")
            self._set_problem(f"the proxy may not read topic {self.topic}: {why}")
        except (KafkaError, UpstreamUnavailable, OSError, EOFError) as error:
            self._set_problem(str(error) or type(error).__name__)

    async def _connect_and_read(self) -> None:
        """Read the topic to its end, and follow it. Raises the errors that _follow() handles."""
        topic_id = await prepare_topic(self._cluster, self.topic, create=not self.loaded.is_set())
        consumer = kafka_consumer(
            self._cluster,
            client_id=CLIENT_ID,
            enable_auto_commit=False,
            auto_offset_reset="none",
            request_timeout_ms=int(REQUEST_SECONDS * 1000),
            metadata_max_age_ms=30_000,
        )
        try:
            await consumer.start()
            consumer.assign([self._partition])
            await self._seek(consumer, topic_id)
            await self._read_to_end(consumer)
            self._topic_id = topic_id
            if self._may_read:
                self._set_problem("")
            while True:
                await self._read_until_probe(consumer)
                if not self._may_read and consumer.highwater(self._partition) is not None:
                    # An empty topic is read to its end without a fetch.
                    self._may_read = True
                    self._set_problem("")
                self.lag = max(await self._end(consumer) - self._position, 0)
        finally:
            await stop_consumer(consumer, self._tasks)

    async def _seek(self, consumer: Any, topic_id: UUID) -> None:
        """Continue at the last position, or from the start if the topic was recreated or has lost records."""
        end = await self._end(consumer)
        start = (await consumer.beginning_offsets([self._partition]))[self._partition]
        if topic_id != self._topic_id or not start <= self._position <= end:
            self._position = start
            self._topic_id = None
            self.skipped.forget()
            self._store.read_anew()
        consumer.seek(self._partition, self._position)

    async def _read_to_end(self, consumer: Any) -> None:
        end = await self._end(consumer)
        records = 0
        while await consumer.position(self._partition) < end:
            read = await self._read(consumer, REQUEST_SECONDS)
            records += read
            if not read:
                await self._end(consumer)
        self._position = max(self._position, end)
        self._store.read_to_end()
        self.lag = 0
        log.info("quotas: topic %s: loaded %d records, up to offset %d", self.topic, records, end)
        self.loaded.set()

    async def _read_until_probe(self, consumer: Any) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + PROBE_SECONDS
        while (left := until - loop.time()) > 0:
            await self._read(consumer, left)

    async def _read(self, consumer: Any, seconds: float) -> int:
        """Read the next records, waiting up to `seconds` for them. Returns their number."""
        batches = await consumer.getmany(
            self._partition, timeout_ms=max(int(seconds * 1000), 1), max_records=RECORDS_AT_A_TIME
        )
        records = batches.get(self._partition, [])
        if records:
            self._store.read(list(self._decoded(records)))
            self._position = records[-1].offset + 1
            self._wake()
        return len(records)

    def _decoded(self, records: Sequence[Any]) -> list[tuple[Place, Setting | None]]:
        """Decode records, oldest first; skip those that cannot be read or applied."""
        changes = []
        for record in records:
            try:
                place, setting = decode(record.key, record.value)
                self._store.check(place, setting)
            except Unreadable as error:
                if record.value is not None:
                    self.skipped.skip(record.key, record.offset, str(error))
                    continue
            else:
                changes.append((place, setting))
            self.skipped.supersede(record.key)
        return changes

    async def _end(self, consumer: Any) -> int:
        try:
            async with asyncio.timeout(END_OFFSET_SECONDS):
                ends = await consumer.end_offsets([self._partition])
        except TimeoutError as error:
            self._cluster.note_failure(leader_address(consumer, self._partition))
            raise UpstreamUnavailable(f"no response from its leader in {END_OFFSET_SECONDS:g} s") from error
        end: int = ends[self._partition]
        return end

    def _set_problem(self, problem: str) -> None:
        if problem and problem != self.problem:
            effect = (
                "changes are rejected" if self.loaded.is_set() else "no client is served until it is loaded"
            )
            log.warning("quotas: cannot read topic %s, %s: %s", self.topic, effect, problem)
        self.problem = problem

    def _set_write_problem(self, problem: str) -> None:
        if problem and problem != self.write_problem:
            log.warning("quotas: changes are rejected: %s", problem)
        self.write_problem = problem

    # Writing

    async def append(self, changes: Sequence[tuple[Place, Setting]]) -> None:
        """Write changes, and return when this proxy has read them back. Raises StoreUnavailable."""
        if self.problem:
            cannot = f"cannot write to topic {self.topic}: {self.problem}"
            raise StoreUnavailable(f"no quota was changed: {cannot}; try again")
        stored = False
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                async with self._one_at_a_time:
                    last = await self._produce(changes)
                stored = True
                self._set_write_problem("")
                await self._read_up_to(last)
        except TopicAuthorizationFailedError as error:
            why = grant(self.topic, "Describe, Read and Write")
            self._set_write_problem(f"the proxy may not write to topic {self.topic}: {why}")
            raise StoreUnavailable(f"no quota was changed: {self.write_problem}") from error
        except (KafkaError, TimeoutError) as error:
            why = str(error) or f"no response in {REQUEST_SECONDS:g} s"
            outcome = f"quotas may not have been changed: cannot write to topic {self.topic}: {why}"
            if stored:
                outcome = f"the change is stored in topic {self.topic}, but this proxy has not read it yet"
            raise StoreUnavailable(f"{outcome}; try again") from error

    async def _produce(self, changes: Sequence[tuple[Place, Setting]]) -> int:
        """Write the changes, and return the offset of the last record."""
        try:
            producer = await self._started()
            sent = []
            for number, (place, setting) in enumerate(changes, 1):
                key, value = encode(place, setting)
                sent.append(await producer.send(self.topic, value, key, partition=0))
                if number % RECORDS_AT_A_TIME == 0:
                    await asyncio.sleep(0)
            last: int = max([(await written).offset for written in sent])
        except BaseException:
            self._abandon()
            raise
        if last < 0:
            raise KafkaError("the produce response has no offset")
        return last

    async def _started(self) -> Any:
        if self._producer is None:
            self._producer = kafka_producer(
                self._cluster,
                client_id=CLIENT_ID,
                acks="all",
                enable_idempotence=True,
                max_batch_size=BATCH_BYTES,
                request_timeout_ms=int(REQUEST_SECONDS * 1000),
                metadata_max_age_ms=int(METADATA_SECONDS * 1000),
            )
            await self._producer.start()
        return self._producer

    def _abandon(self) -> None:
        """Stop the producer without sending its pending records.

        aiokafka's idempotent producer retries forever, so a change that was reported as rejected could still
        be written later.
        """
        producer, self._producer = self._producer, None
        if producer is not None:
            sender = producer._sender.sender_task
            if sender is not None:
                sender.cancel()
            self._tasks.start(producer.stop())

    async def _read_up_to(self, offset: int) -> None:
        """Wait until this proxy has read the record at `offset`."""
        if self._position <= offset:
            read: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((offset, read))
            await read

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for offset, read in waiting:
            if offset >= self._position:
                self._waiting.append((offset, read))
            elif not read.done():
                read.set_result(None)

    async def close(self) -> None:
        """Close the producer. Cancelling run() ends reading."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(END_OFFSET_SECONDS):
                    await producer.stop()
