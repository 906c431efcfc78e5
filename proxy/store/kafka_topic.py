"""KafkaTopic: the compacted topic that the proxies of a cluster share what the tools have set through.

Read to its end at the start, then followed. What this proxy writes counts when its own reader has had it.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from proxy.errors import UpstreamUnavailable
from proxy.security.access import PLAINTEXT, Access
from proxy.store.quota_store import QuotaStore, StoreUnavailable
from proxy.store.records import Place, Setting, Unreadable, decode, encode
from proxy.tasks import Tasks
from proxy.upstream.topic_setup import prepare_topic

log = logging.getLogger(__name__)
CLIENT_ID: Final = "quota-proxy"
RETRY_SECONDS: Final = 0.5
PROBE_SECONDS: Final = 1.0
"""How often the topic's end is asked for, which tells whether it can be reached."""
ANSWER_SECONDS: Final = 5.0
"""How long the topic's leader may take to tell where it ends."""
REQUEST_SECONDS: Final = 5.0
"""How long an answer of the cluster, or a change's way through it, may take."""
RECORDS_AT_A_TIME: Final = 200
"""Records taken in before the event loop gets a turn."""
BATCH_BYTES: Final = 256 << 10


class KafkaTopic:
    """Follows the topic with run(), and adds to it with append()."""

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        topic: str,
        store: QuotaStore,
        tasks: Tasks,
        connect_seconds: float,
        access: Access = PLAINTEXT,
    ) -> None:
        self.problem = f"topic {topic} has not been read yet"
        """Why the topic cannot be followed at the moment; empty when it is."""
        self.loaded: Final = asyncio.Event()
        """Set when the topic has been read to its end for the first time."""
        self.lag = 0
        """Records that are there and not read yet, when they were counted last."""
        self._bootstrap: Final = tuple(bootstrap)
        self._servers: Final = [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in bootstrap
        ]
        self._partition: Final = TopicPartition(topic, 0)
        self._store: Final = store
        self._tasks: Final = tasks
        self._connect_seconds: Final = connect_seconds
        self._access: Final = access
        self._topic_id: UUID | None = None
        """Of the topic that `_position` is in; None: it has to be read anew."""
        self._position = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._producer: Any = None
        self._one_at_a_time: Final = asyncio.Lock()
        self._unreadable: Final[set[str]] = set()
        # Of a cluster that is away it says dozens of lines a second; `problem` says it once.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    @property
    def topic(self) -> str:
        name: str = self._partition.topic
        return name

    # Reading

    async def run(self) -> None:
        """Follow the topic for ever."""
        while True:
            # A task of its own: no failure ends this, not even a cancellation that aiokafka lets out.
            following = self._tasks.start(self._follow())
            await asyncio.wait([following])
            if following.cancelled() or following.exception() is not None:
                self._set_problem("reading it has failed; the log says how")
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        """Follow the topic until it cannot be reached."""
        try:
            await self._connect_and_read()
        except (KafkaError, UpstreamUnavailable, OSError, EOFError) as error:
            self._set_problem(str(error) or type(error).__name__)

    async def _connect_and_read(self) -> None:
        topic_id = await prepare_topic(
            self._bootstrap,
            self.topic,
            self._connect_seconds,
            create=not self.loaded.is_set(),
            access=self._access,
        )
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            client_id=CLIENT_ID,
            enable_auto_commit=False,
            auto_offset_reset="none",
            request_timeout_ms=int(REQUEST_SECONDS * 1000),
            metadata_max_age_ms=30_000,
            **self._access.for_aiokafka(),
        )
        try:
            await consumer.start()
            consumer.assign([self._partition])
            await self._find_place(consumer, topic_id)
            await self._read_to_end(consumer)
            self._topic_id = topic_id
            self._set_problem("")
            while True:
                await self._read_until_probe(consumer)
                self.lag = max(await self._end(consumer) - self._position, 0)
        finally:
            await _stop(consumer)

    async def _find_place(self, consumer: Any, topic_id: UUID) -> None:
        """Go on where reading ended; from the start where this is another topic, or has lost its end."""
        end = await self._end(consumer)
        if topic_id != self._topic_id or end < self._position:
            starts = await consumer.beginning_offsets([self._partition])
            self._position = starts[self._partition]
            self._topic_id = None
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
        log.info("quotas: topic %s: %d records read, up to offset %d", self.topic, records, end)
        self.loaded.set()

    async def _read_until_probe(self, consumer: Any) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + PROBE_SECONDS
        while (left := until - loop.time()) > 0:
            await self._read(consumer, left)

    async def _read(self, consumer: Any, seconds: float) -> int:
        """Take in what comes next, waiting so long for it; how many records."""
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
        changes = []
        for record in records:
            try:
                changes.append(decode(record.key, record.value))
            except Unreadable as error:
                if str(error) not in self._unreadable:
                    self._unreadable.add(str(error))
                    log.warning(
                        "quotas: topic %s: the record at offset %d, and those like it, are skipped: %s",
                        self.topic,
                        record.offset,
                        error,
                    )
        return changes

    async def _end(self, consumer: Any) -> int:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                ends = await consumer.end_offsets([self._partition])
        except TimeoutError as error:
            raise UpstreamUnavailable(f"its leader does not answer for {ANSWER_SECONDS:g} s") from error
        end: int = ends[self._partition]
        return end

    def _set_problem(self, problem: str) -> None:
        if problem and problem != self.problem:
            means = (
                "cannot be followed, changes are rejected"
                if self.loaded.is_set()
                else "cannot be read, and no client is served before it is"
            )
            log.warning("quotas: topic %s %s: %s", self.topic, means, problem)
        self.problem = problem

    # Writing

    async def append(self, changes: Sequence[tuple[Place, Setting]]) -> None:
        """Store changes, and return when this proxy's reader has had them. Raises StoreUnavailable."""
        if self.problem:
            raise StoreUnavailable(self._rejection(self.problem))
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                async with self._one_at_a_time:
                    last = await self._produce(changes)
                await self._read_up_to(last)
        except (KafkaError, TimeoutError) as error:
            why = str(error) or f"no answer in {REQUEST_SECONDS:g} s"
            raise StoreUnavailable(self._rejection(why)) from error

    def _rejection(self, why: str) -> str:
        return (
            f"the quotas in force stay as they are: topic {self.topic} cannot be written to: {why}; try again"
        )

    async def _produce(self, changes: Sequence[tuple[Place, Setting]]) -> int:
        """Write them; the offset of the last."""
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
            raise KafkaError("the cluster does not say where it has written")
        return last

    async def _started(self) -> Any:
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                bootstrap_servers=self._servers,
                client_id=CLIENT_ID,
                acks="all",
                enable_idempotence=True,
                max_batch_size=BATCH_BYTES,
                request_timeout_ms=int(REQUEST_SECONDS * 1000),
                **self._access.for_aiokafka(),
            )
            await self._producer.start()
        return self._producer

    def _abandon(self) -> None:
        """Have nothing more written of what is still on its way.

        An idempotent producer of aiokafka tries for ever: a rejected change would be made later.
        """
        producer, self._producer = self._producer, None
        if producer is not None:
            sender = producer._sender.sender_task
            if sender is not None:
                sender.cancel()
            self._tasks.start(producer.stop())

    async def _read_up_to(self, offset: int) -> None:
        """Wait until the reader is past this offset."""
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
        """Stop writing; reading ends with run()."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await producer.stop()


async def _stop(consumer: Any) -> None:
    """Stop a consumer. aiokafka passes the cancellation of a fetch that waits to be repeated off as ours, and
    stays connected.
    """
    task = asyncio.current_task()
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        if task is None or task.cancelling():
            raise
        await consumer._client.close()
