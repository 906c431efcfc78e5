"""SharesTopic: the topic through which proxies share limits, as a log of reports."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from proxy.errors import UpstreamUnavailable
from proxy.quota.sharing.reports import Report
from proxy.store.consumers import follow, stop_consumer
from proxy.store.quota_records import Unreadable
from proxy.store.sharing.share_records import cluster_of, decode_report, encode_report
from proxy.store.skipped_records import SkippedRecords
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.kafka_clients import kafka_consumer, kafka_producer, leader_address
from proxy.upstream.topic_setup import TopicPlan, grant, prepare_topic

log = logging.getLogger(__name__)
CLIENT_ID: Final = "quota-proxy-shares"
READ_SECONDS: Final = 2.0
"""The longest wait for records. After it, a request shows whether the topic is still there."""
LEADER_SECONDS: Final = 2.0
"""The timeout of that request. Sharing is degraded by then (DEGRADED_SECONDS), and to connect anew takes some
tenths of a second.
"""
CATCH_UP_SECONDS: Final = 0.1
"""The longest wait for records until those that are there are read. There may be none."""
REQUEST_SECONDS: Final = 5.0
"""Timeout of the other requests to the cluster."""
CLOSE_SECONDS: Final = 1.0
"""How long to wait at the end until the appended reports are written."""
RECORDS_AT_A_TIME: Final = 200
"""Records of one read."""
BEFORE_END: Final = 5000
"""How many of the last records a process reads at its start: more than all processes write while a lease
lasts. What is older has no effect.
"""
COMPRESSION: Final = "snappy"
"""Each process reads what all write. With snappy, a report of many limits has a third of its bytes, and one
of 64 KiB takes 0.1 ms. zstd would halve it once more, and take three times as long.
"""
UNSENT_AT_MOST: Final = 20
"""Reports that wait for the broker; further ones are dropped."""
AT_ONCE: Final = 100
"""After a report with more buckets, the event loop gets a turn."""
CLUSTERS_LOGGED: Final = 10
"""Names of other clusters that are logged."""
SKIPPED_SECONDS: Final = 600.0
"""The time for which skipped records are a warning. After it, the topic's retention has deleted them."""
LOG_APPEND_TIME: Final = 1
"""message.timestamp.type: the broker's clock, not the sender's."""
PLAN: Final = TopicPlan(
    1,
    {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        # With fewer in-sync replicas, nobody could read new records. The next report supersedes one that is
        # lost.
        "min.insync.replicas": "1",
        "retention.ms": "600000",
        "segment.ms": "300000",
        "segment.bytes": str(64 << 20),
    },
)


class SharesTopic:
    """run() follows the topic; append() writes to it."""

    def __init__(
        self,
        cluster: ClusterAccess,
        topic: str,
        tasks: Tasks,
        cluster_name: str = "",
    ) -> None:
        """cluster_name: the reports of processes with another one are ignored."""
        self._cannot_read = f"topic {topic} is not read yet"
        self._cannot_write = ""
        self.skipped: Final = SkippedRecords(
            topic, "sharing", "only proxies may write to this topic: revoke the right of the others"
        )
        self._skipped_at = 0.0
        self._partition: Final = TopicPartition(topic, 0)
        self._tasks: Final = tasks
        self._cluster: Final = cluster
        self._cluster_name: Final = cluster_name
        self._ignored: Final[set[str]] = set()
        """Names of other clusters that were logged."""
        self._topic_id: object = None
        self._position = 0
        self._producer: Any = None
        self.unsent = 0
        """Reports that wait for the broker."""
        # aiokafka logs dozens of lines a second while a cluster is unavailable; `problem` is logged once.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    async def run(self, see: Callable[[Report, int, int], None], begin_anew: Callable[[], None]) -> None:
        """Follow the topic; never returns.

        see: takes each report with its offset and the broker's timestamp in milliseconds.
        begin_anew: called when the topic was recreated, so that its offsets begin again.
        """
        await follow(lambda: self._follow(see, begin_anew), self._set_read_problem, self._tasks)

    async def _follow(self, see: Callable[[Report, int, int], None], begin_anew: Callable[[], None]) -> None:
        """Follow the topic until it is unavailable."""
        try:
            await self._connect_and_read(see, begin_anew)
        except TopicAuthorizationFailedError:
            self._set_read_problem(self._may_not("read", "Describe, Read and Write"))
        except (KafkaError, UpstreamUnavailable, OSError, EOFError) as error:
            self._set_read_problem(str(error) or type(error).__name__)
        finally:
            self._abandon()

    async def _connect_and_read(
        self, see: Callable[[Report, int, int], None], begin_anew: Callable[[], None]
    ) -> None:
        """Read the last reports, and follow the topic. Raises the errors that _follow() handles."""
        topic = self._partition.topic
        topic_id = await prepare_topic(self._cluster, topic, create=True, plan=PLAN)
        options = {
            "client_id": CLIENT_ID,
            "request_timeout_ms": int(REQUEST_SECONDS * 1000),
            "metadata_max_age_ms": 30_000,
        }
        consumer = kafka_consumer(
            self._cluster, enable_auto_commit=False, auto_offset_reset="none", **options
        )
        try:
            await consumer.start()
            consumer.assign([self._partition])
            async with asyncio.timeout(REQUEST_SECONDS):
                end = await self._seek(consumer, topic_id, begin_anew)
            await self._catch_up(consumer, see, end)
            # A report that was lost is superseded by the next one, so it is not worth waiting for replicas.
            producer = kafka_producer(self._cluster, acks=1, compression_type=COMPRESSION, **options)
            self._producer = await self._started(producer)
            self.unsent = 0
            self._set_read_problem("")
            while True:
                if not await self._read(consumer, see, READ_SECONDS):
                    # Not even an own heartbeat has come: aiokafka waits forever for a topic that is gone.
                    async with asyncio.timeout(LEADER_SECONDS):
                        await consumer.end_offsets([self._partition])
        except TimeoutError as error:
            self._cluster.note_failure(leader_address(consumer, self._partition))
            raise UpstreamUnavailable("no response from its leader") from error
        finally:
            await stop_consumer(consumer, self._tasks)

    async def _started(self, producer: Any) -> Any:
        try:
            await producer.start()
        except BaseException:
            self._tasks.start(producer.stop())
            raise
        return producer

    async def _seek(self, consumer: Any, topic_id: object, begin_anew: Callable[[], None]) -> int:
        """Go to the next record; return the end of the log."""
        start = (await consumer.beginning_offsets([self._partition]))[self._partition]
        end: int = (await consumer.end_offsets([self._partition]))[self._partition]
        if topic_id != self._topic_id or not start <= self._position <= end:
            if self._topic_id is not None:
                begin_anew()
            self._topic_id = topic_id
            self._position = max(start, end - BEFORE_END)
        consumer.seek(self._partition, self._position)
        return end

    async def _catch_up(self, consumer: Any, see: Callable[[Report, int, int], None], end: int) -> None:
        """Read up to the offset `end`, before this process may write: one that reports and reads nothing
        would hold up all others, for a part grows only when all live processes have read why.
        """
        time = asyncio.get_running_loop().time
        read_at = time()

        def is_there() -> bool:
            # If the log is empty, only this shows that the proxy may read it.
            has_fetched = consumer.highwater(self._partition) is not None
            return has_fetched and self._position >= end

        # The last offsets of a log may be markers of transactions, which no consumer gets.
        while not is_there() and time() - read_at < REQUEST_SECONDS:
            if await self._read(consumer, see, CATCH_UP_SECONDS):
                read_at = time()

    async def _read(self, consumer: Any, see: Callable[[Report, int, int], None], seconds: float) -> int:
        """Read the next records, waiting up to `seconds` for them. Returns their number."""
        batches = await consumer.getmany(
            self._partition, timeout_ms=int(seconds * 1000), max_records=RECORDS_AT_A_TIME
        )
        records = batches.get(self._partition, [])
        now = asyncio.get_running_loop().time()
        for record in records:
            self._position = record.offset + 1
            if record.timestamp_type != LOG_APPEND_TIME:
                continue
            try:
                report = decode_report(record.value)
            except Unreadable as error:
                self._skipped_at = now
                self.skipped.skip(record.key, record.offset, str(error))
            else:
                if self._is_of_another_cluster(record.value):
                    continue
                see(report, record.offset, record.timestamp)
                if len(report.buckets) > AT_ONCE:
                    await asyncio.sleep(0)
        if now - self._skipped_at > SKIPPED_SECONDS:
            self.skipped.forget()
        if records and self.writable:
            # Older records may be of a time before the topic's config was corrected.
            self._check_clock(records[-1].timestamp_type)
        return len(records)

    def _check_clock(self, timestamp_type: int) -> None:
        """Report whether records have the broker's timestamps: the clocks of processes may differ."""
        if timestamp_type == LOG_APPEND_TIME:
            self._set_read_problem("")
            return
        self._set_read_problem(
            f"its records cannot be used, because message.timestamp.type of topic {self._partition.topic} is "
            "not LogAppendTime; set it"
        )

    def _is_of_another_cluster(self, value: bytes) -> bool:
        """Whether a report is of another cluster, whose limits are not shared. Log each such cluster once."""
        name = cluster_of(value)
        if name == self._cluster_name or not name:
            return False
        if name not in self._ignored and len(self._ignored) < CLUSTERS_LOGGED:
            self._ignored.add(name)
            log.warning(
                "sharing: topic %s has reports of proxies whose `cluster` is %r, not %r; they do not share "
                "limits with this one",
                self._partition.topic,
                name,
                self._cluster_name,
            )
        return True

    @property
    def writable(self) -> bool:
        """Whether the topic is connected."""
        return self._producer is not None

    def append(self, report: Report) -> None:
        """Write a report, without waiting for it. It may be lost; the next one supersedes it."""
        if self._producer is not None and self.unsent < UNSENT_AT_MOST:
            self.unsent += 1
            # A topic that is compacted takes no record without a key.
            key, value = report.instance.encode(), encode_report(report, self._cluster_name)
            self._tasks.start(self._send(self._producer, key, value))

    async def _send(self, producer: Any, key: bytes, value: bytes) -> None:
        problem = ""
        try:
            await producer.send_and_wait(self._partition.topic, value, key, partition=0)
        except TopicAuthorizationFailedError:
            problem = self._may_not("write to", "Describe, Read and Write")
        except KafkaError as error:
            problem = f"cannot write to it: {error!s}"
        finally:
            # A producer that was abandoned may keep its reports for as long as it runs, and fails with them
            # when the topic can be written again.
            if producer is self._producer:
                self.unsent -= 1
                self._set_write_problem(problem)

    async def close(self) -> None:
        """Write what was appended, and close the connections."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(TimeoutError, KafkaError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await producer.stop()

    def _abandon(self) -> None:
        """Stop the producer, without waiting for it."""
        producer, self._producer = self._producer, None
        if producer is not None:
            self._tasks.start(producer.stop())

    @property
    def problem(self) -> str:
        """Why the topic cannot be read or written at the moment; empty if it can."""
        return self._cannot_read or self._cannot_write

    def _may_not(self, what: str, rights: str) -> str:
        topic = self._partition.topic
        return f"the proxy may not {what} topic {topic}: {grant(topic, rights)}"

    def _set_read_problem(self, problem: str) -> None:
        if problem != self._cannot_read:
            self._warn(problem)
        self._cannot_read = problem

    def _set_write_problem(self, problem: str) -> None:
        if problem != self._cannot_write:
            self._warn(problem)
        self._cannot_write = problem

    def _warn(self, problem: str) -> None:
        if problem:
            log.warning(
                "sharing: topic %s: %s; each process keeps its part of each limit, or uses the whole if it "
                "has none",
                self._partition.topic,
                problem,
            )
