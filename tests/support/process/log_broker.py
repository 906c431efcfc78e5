"""LogBroker: one topic with one partition in memory, for the proxy's own producers and consumers."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar, Final
from uuid import UUID, uuid4

from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.record.util import calc_crc32c
from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import (
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
)
from tests.support.messages.kio_messages import response_type
from tests.support.messages.mutations import NO_TIME
from tests.support.messages.requests import build, next_offset, part
from tests.support.messages.requests import values as values_of
from tests.support.process.socket_broker import SocketBroker

INIT_PRODUCER_ID: Final = 22
END: Final = -1
"""The timestamp of ListOffsets that means the end of the log."""


class LogBroker(SocketBroker):
    """Node 1 of a cluster. The topic exists once a test or a request creates it."""

    newest: ClassVar = {
        PRODUCE: 8,
        FETCH: 11,
        LIST_OFFSETS: 3,
        METADATA: 12,
        CREATE_TOPICS: 7,
        INIT_PRODUCER_ID: 1,
        DESCRIBE_CONFIGS: 4,
    }

    def __init__(
        self,
        topic: str,
        create: bool = True,
        append_time_ms: int | None = None,
        creates_when_asked: bool = False,
    ) -> None:
        """append_time_ms: the time of all records (LogAppendTime); None: they have their senders' times.
        creates_when_asked: auto.create.topics.enable.
        """
        self.topic: Final = topic
        self.append_time_ms = append_time_ms
        self.creates_when_asked: Final = creates_when_asked
        self.metadata_requests = 0
        self.topic_id: UUID | None = None
        self.partitions = 0
        """The number of partitions in the request that created the topic."""
        self.configs: dict[str, str] = {}
        """The topic's configs in that request."""
        self.silent: Final[set[int]] = set()
        """API keys to which it sends no response."""
        self.produce_error = ErrorCode.none
        self.fetch_error = ErrorCode.none
        self.fetches = 0
        self._batches: list[bytes] = []
        self._start = self._end = 0
        self._appended = asyncio.Event()
        if create:
            self.create()

    @property
    def values(self) -> list[bytes]:
        """The values of all records."""
        return values_of(b"".join(self._batches))

    @property
    def size(self) -> int:
        """The bytes of all records, as they were sent."""
        return sum(map(len, self._batches))

    def delete(self) -> None:
        """Delete the topic."""
        self.topic_id = None

    def create(self) -> None:
        """Create the topic, without records."""
        self.topic_id = uuid4()
        self.truncate()

    def truncate(self) -> None:
        """Lose all records, as after an unclean leader election; the topic stays the same."""
        self._batches = []
        self._start = self._end = 0

    def delete_records(self) -> None:
        """Delete all records, as kafka-delete-records.sh does: later ones have later offsets."""
        self._batches = []
        self._start = self._end

    def append(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Append a batch of keys and values."""
        builder = MemoryRecordsBuilder(2, 0, 1 << 20)
        for key, value in records:
            assert builder.append(timestamp=1, key=key, value=value)
        builder.close()
        self._append(bytes(builder.buffer()))

    def _append(self, batch: bytes) -> int:
        """Append a batch, and return its first offset."""
        first = self._end
        placed = first.to_bytes(8, "big") + batch[8:]
        if self.append_time_ms is not None:
            placed = _stamped(placed, self.append_time_ms)
        self._batches.append(placed)
        self._end = next_offset(placed)
        self._appended.set()
        self._appended = asyncio.Event()
        return first

    @property
    def _topic_error(self) -> ErrorCode:
        return ErrorCode.none if self.topic_id is not None else ErrorCode.unknown_topic_or_partition

    async def respond(self, request: Any) -> Any:
        if request.__api_key__ in self.silent:
            return None
        schema = response_type(request.__api_key__, request.__version__)
        handlers = {
            PRODUCE: self._produce,
            LIST_OFFSETS: self._list_offsets,
            METADATA: self._metadata,
            CREATE_TOPICS: self._create_topics,
            INIT_PRODUCER_ID: self._init_producer_id,
            DESCRIBE_CONFIGS: self._describe_configs,
        }
        if request.__api_key__ == FETCH:
            return await self._fetch(request, schema)
        return handlers[request.__api_key__](request, schema)

    def _produce(self, request: Any, schema: Any) -> Any:
        (sent,) = request.topic_data[0].partition_data
        first = self._append(sent.records) if self.produce_error == ErrorCode.none else -1
        partition = part(
            schema,
            "PartitionProduceResponse",
            index=sent.index,
            error_code=self.produce_error,
            base_offset=first,
            log_append_time=None,
            log_start_offset=self._start,
        )
        topic = part(schema, "TopicProduceResponse", name=self.topic, partition_responses=(partition,))
        return build(schema, responses=(topic,), throttle_time=NO_TIME)

    async def _fetch(self, request: Any, schema: Any) -> Any:
        (wanted,) = request.topics[0].partitions
        self.fetches += 1
        fails = self.fetch_error != ErrorCode.none
        if wanted.fetch_offset >= self._end and not fails:
            with suppress(TimeoutError):
                async with asyncio.timeout(request.max_wait.total_seconds()):
                    await self._appended.wait()
        in_range = self._start <= wanted.fetch_offset <= self._end
        partition = part(
            schema,
            "PartitionData",
            partition_index=wanted.partition,
            error_code=self.fetch_error
            if fails
            else (self._topic_error if in_range else ErrorCode.offset_out_of_range),
            high_watermark=self._end,
            last_stable_offset=self._end,
            log_start_offset=self._start,
            aborted_transactions=(),
            records=b"".join(
                batch for batch in self._batches if next_offset(batch) > wanted.fetch_offset and not fails
            ),
        )
        topic = part(schema, "FetchableTopicResponse", topic=self.topic, partitions=(partition,))
        return build(
            schema, throttle_time=NO_TIME, error_code=ErrorCode.none, session_id=0, responses=(topic,)
        )

    def _list_offsets(self, request: Any, schema: Any) -> Any:
        (asked,) = request.topics[0].partitions
        partition = part(
            schema,
            "ListOffsetsPartitionResponse",
            partition_index=asked.partition_index,
            error_code=self._topic_error,
            timestamp=-1,
            offset=self._end if asked.timestamp == END else self._start,
        )
        topic = part(schema, "ListOffsetsTopicResponse", name=self.topic, partitions=(partition,))
        return build(schema, throttle_time=NO_TIME, topics=(topic,))

    def _metadata(self, request: Any, schema: Any) -> Any:
        host, port = self.address
        self.metadata_requests += 1
        if self.creates_when_asked and request.topics and request.allow_auto_topic_creation:
            self.create()
        node = part(schema, "MetadataResponseBroker", node_id=1, host=host, port=port, rack=None)
        partition = part(
            schema,
            "MetadataResponsePartition",
            error_code=ErrorCode.none,
            partition_index=0,
            leader_id=1,
            leader_epoch=0,
            replica_nodes=(1,),
            isr_nodes=(1,),
            offline_replicas=(),
        )
        topic = part(
            schema,
            "MetadataResponseTopic",
            error_code=self._topic_error,
            name=self.topic,
            topic_id=self.topic_id,
            is_internal=False,
            partitions=(partition,) if self.topic_id is not None else (),
        )
        return build(
            schema,
            throttle_time=NO_TIME,
            brokers=(node,),
            cluster_id="c",
            controller_id=1,
            topics=() if request.topics == () else (topic,),
        )

    def _create_topics(self, request: Any, schema: Any) -> Any:
        (wanted,) = request.topics
        assert wanted.name == self.topic
        self.partitions = wanted.num_partitions
        self.configs = {config.name: config.value for config in wanted.configs}
        self.create()
        topic = part(
            schema,
            "CreatableTopicResult",
            name=self.topic,
            topic_id=self.topic_id,
            error_code=ErrorCode.none,
            error_message=None,
            configs=(),
        )
        return build(schema, throttle_time=NO_TIME, topics=(topic,))

    def _init_producer_id(self, request: Any, schema: Any) -> Any:
        return build(
            schema, throttle_time=NO_TIME, error_code=ErrorCode.none, producer_id=1, producer_epoch=0
        )

    def _describe_configs(self, request: Any, schema: Any) -> Any:
        return build(schema, throttle_time=NO_TIME, results=())


def _stamped(batch: bytes, time_ms: int) -> bytes:
    """A record batch with LogAppendTime in its attributes, and its maxTimestamp (record format 2)."""
    attributes = int.from_bytes(batch[21:23], "big") | 1 << 3
    signed = attributes.to_bytes(2, "big") + batch[23:35] + time_ms.to_bytes(8, "big") + batch[43:]
    crc: int = calc_crc32c(signed)
    return batch[:17] + crc.to_bytes(4, "big") + signed
