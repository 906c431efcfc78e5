"""BoundedRecords: the record batches in a Fetch response, which aiokafka decompresses only within a bound.

Whoever may write to a topic of the proxy directly at a broker can store a batch of a few kilobytes there that
decompresses to gigabytes. A broker validates such a batch without keeping what it decompresses. aiokafka
would allocate all of it, in each process that reads the topic, and again after each restart.

In place of such a batch, aiokafka gets one record that no reader of the proxy accepts: all of them skip and
report such records.
"""

import json
import zlib
from typing import Any, Final

import cramjam
from aiokafka.record.memory_records import MemoryRecords

MAX_BATCH_BYTES: Final = 1 << 20
"""Decompressed bytes of a batch. The proxies write batches of up to 256 KiB."""
_GZIP: Final = 1
_SNAPPY: Final = 2
_LZ4: Final = 3
_ZSTD: Final = 4
_CODECS: Final = 0x07
"""The bits of the attributes that name the codec."""
_LOG_APPEND_TIME: Final = 0x08
_LENGTH_AT: Final = 8
_HEAD_BYTES: Final = 12
"""base_offset int64, and the length of the rest, int32."""
_MAGIC_AT: Final = 16
_XERIAL: Final = b"\x82SNAPPY\0"
"""The beginning of snappy data in blocks, as Java writes it."""
_XERIAL_HEAD_BYTES: Final = 16
_GZIP_WINDOW: Final = 31


class BoundedRecords:
    """Fulfils the protocol of aiokafka's MemoryRecords."""

    def __init__(self, data: bytes) -> None:
        self._data: Final = data
        self._records: Final = MemoryRecords(data)
        self._at = 0

    def size_in_bytes(self) -> int:
        size: int = self._records.size_in_bytes()
        return size

    def has_next(self) -> bool:
        any_left: bool = self._records.has_next()
        return any_left

    def next_batch(self) -> Any:
        start = self._at
        self._at += _HEAD_BYTES + _int32(self._data, start + _LENGTH_AT)
        batch = self._records.next_batch()
        if batch is None:
            return None
        attributes, payload = _content(memoryview(self._data)[start : self._at])
        codec = attributes & _CODECS
        try:
            fits = codec == 0 or _decompresses(codec, payload)
        except (ValueError, IndexError, zlib.error, cramjam.DecompressionError):
            # Too large, or not of its codec.
            fits = False
        return batch if fits else _SkippedBatch(batch.next_offset, attributes)


class _SkippedBatch:
    """A batch of one record, in place of all records of another one."""

    is_control_batch: Final = False
    is_transactional: Final = False
    producer_id: Final = None

    def __init__(self, next_offset: int, attributes: int) -> None:
        self.next_offset: Final = next_offset
        self.base_offset: Final = next_offset - 1
        self._record: Final = _Record(next_offset - 1, int(attributes & _LOG_APPEND_TIME != 0))

    def validate_crc(self) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter([self._record])


class _Record:
    timestamp: Final = 0
    checksum: Final = None
    headers: Final = ()
    value: Final = json.dumps(f"a batch that is not readable within {MAX_BATCH_BYTES} bytes").encode()
    key: Final = b'{"kind": ' + value + b"}"

    def __init__(self, offset: int, timestamp_type: int) -> None:
        self.offset: Final = offset
        self.timestamp_type: Final = timestamp_type


def _content(batch: memoryview) -> tuple[int, memoryview]:
    """The attributes of a batch and its records, which may be compressed."""
    magic = batch[_MAGIC_AT]
    if magic >= 2:
        return batch[22], batch[61:]
    # A message of an old format; the value is a set of messages if it is compressed.
    value_at = 18 if magic == 0 else 26
    value_at += 4 + max(_int32(batch, value_at), 0)
    return batch[17], batch[value_at + 4 :]


def _int32(data: bytes | memoryview, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big", signed=True)


def _decompresses(codec: int, payload: memoryview) -> bool:
    """Whether a payload has at most MAX_BATCH_BYTES. Raises what the codec raises for one that it cannot
    read.
    """
    if codec == _GZIP:
        return _gzip_fits(payload)
    if codec == _SNAPPY:
        return _snappy_fits(payload)
    if codec not in (_LZ4, _ZSTD):
        return False
    into = cramjam.lz4.decompress_into if codec == _LZ4 else cramjam.zstd.decompress_into
    into(payload, bytearray(MAX_BATCH_BYTES))
    return True


def _gzip_fits(payload: memoryview) -> bool:
    """Whether gzip data fits; it may have several members."""
    room = MAX_BATCH_BYTES
    left: bytes | memoryview = payload
    while len(left) > 0:
        stream = zlib.decompressobj(_GZIP_WINDOW)
        # One more byte than there may be shows that there are more.
        room -= len(stream.decompress(left, room + 1))
        if room < 0 or not stream.eof:
            return False
        left = stream.unused_data
    return True


def _snappy_fits(payload: memoryview) -> bool:
    """Whether snappy data fits. Each block states its size."""
    blocks = [payload]
    if bytes(payload[: len(_XERIAL)]) == _XERIAL:
        blocks = []
        at = _XERIAL_HEAD_BYTES
        while at < len(payload):
            end = at + 4 + max(_int32(payload, at), 0)
            blocks.append(payload[at + 4 : end])
            at = end
    room = MAX_BATCH_BYTES
    for block in blocks:
        room -= cramjam.snappy.decompress_raw_len(block)
        if room < 0:
            return False
        cramjam.snappy.decompress_raw(block)
    return True
