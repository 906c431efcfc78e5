"""MetadataNames: topics' ids and names in a Metadata response, read in steps.

MetadataResponse v12. A cluster may have a hundred thousand partitions: the caller gives way to others between
steps. Everything else in the response is skipped.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.reader import Reader

METADATA_VERSION: Final = 12
"""The version of the response: the first with requests by topic id. Kafka 3.1 and later support it."""


@final
class MetadataNames:
    """Raises Malformed or Short if the bytes are not such a response."""

    def __init__(self, payload: bytes) -> None:
        """`payload`: the frame without its length."""
        reader = Reader([payload], 0)
        self._reader: Final = reader
        self._partitions_left: native = 0
        self.correlation_id: Final = reader.i32()
        self.names: Final[dict[bytes, str]] = {}
        """By topic id, those of topics without an error, as far as they have been read."""
        reader.skip_tags()
        reader.take(4)  # throttle_time_ms
        brokers = reader.count(True)
        while brokers > 0:
            reader.take(4)  # node_id
            reader.skip_string(True)  # host
            reader.take(4)  # port
            reader.skip_string(True)  # rack
            reader.skip_tags()
            brokers -= 1
        reader.skip_string(True)  # cluster_id
        reader.take(4)  # controller_id
        self._topics_left: native = reader.count(True)
        self._in_topic = False

    def read(self, most: native) -> bool:
        """Read on, through at most this number of topics and partitions; return whether that was all."""
        reader = self._reader
        left = most
        while left > 0:
            left -= 1
            if self._partitions_left > 0:
                self._skip_partition()
            elif self._in_topic:
                reader.take(4)  # topic_authorized_operations
                reader.skip_tags()
                self._in_topic = False
            elif self._topics_left > 0:
                self._read_topic()
            else:
                return True
        return False

    def _read_topic(self) -> None:
        reader = self._reader
        error_code = reader.i16()
        name = reader.string(True)
        topic_id = reader.uuid()
        reader.take(1)  # is_internal
        if error_code == 0 and name:
            self.names[topic_id] = name
        self._partitions_left = reader.count(True)
        self._topics_left -= 1
        self._in_topic = True

    def _skip_partition(self) -> None:
        reader = self._reader
        reader.take(14)  # error_code, partition_index, leader_id, leader_epoch
        for _ in range(3):  # replica_nodes, isr_nodes, offline_replicas
            reader.skip(4 * reader.count(True))
        reader.skip_tags()
        self._partitions_left -= 1
