"""The fake broker's frequent answers: made once for each shape of request, and shared by all connections."""

import functools
import struct
from typing import Final

from bench.load.cold import ColdAnswers
from bench.load.frames import TOPIC, fetch_response, produce_response
from proxy.wire.api_keys import FETCH, PRODUCE

# size, api_key, api_version, correlation_id, the client id's length
HEAD: Final = struct.Struct("!ihhih")
SMALLEST_BATCH: Final = 68
_I32: Final = struct.Struct("!i")
# Offsets behind a v2 header, in the requests that this pair sends: one topic of a known name, less than
# 127 partitions, so that every compact length before them is one byte.
_PRODUCE_PARTITIONS: Final = 1 + 2 + 4 + 1 + 1 + len(TOPIC)
_FETCH_MAX_BYTES: Final = 4 + 4 + 4
_FETCH_PARTITIONS: Final = 4 + 4 + 4 + 4 + 1 + 4 + 4 + 1 + 1 + len(TOPIC)


class RejectedRequest(Exception):
    """The fake broker has no answer to a request, or cannot read it."""


@functools.lru_cache(maxsize=64)
def canned_produce(partitions: int) -> bytearray:
    """The answer to a Produce of so many partitions; its correlation id is for the sender to set."""
    return bytearray(produce_response(partitions))


@functools.lru_cache(maxsize=16)
def canned_fetch(partitions: int, max_bytes: int) -> bytearray:
    """The answer to a Fetch of so many partitions and bytes in all; every partition has a batch."""
    return bytearray(fetch_response(partitions, max(max_bytes // partitions, SMALLEST_BATCH)))


def answer(buffer: bytearray, at: int, size: int, cold: ColdAnswers) -> bytearray:
    """The response frame to the whole request of `size` bytes at `at`, where its int32 size stands.

    Raises RejectedRequest for an API or version that the fake broker does not advertise.
    """
    _, api_key, version, _, client_length = HEAD.unpack_from(buffer, at)
    body = at + HEAD.size + max(client_length, 0) + 1
    if api_key == PRODUCE and version == 9:
        return canned_produce(buffer[body + _PRODUCE_PARTITIONS] - 1)
    if api_key == FETCH and version == 12:
        (max_bytes,) = _I32.unpack_from(buffer, body + _FETCH_MAX_BYTES)
        return canned_fetch(buffer[body + _FETCH_PARTITIONS] - 1, max_bytes)
    response = cold.answer(bytes(buffer[at + 4 : at + 4 + size]))
    if response is None:
        raise RejectedRequest(f"no answer to api key {api_key}, version {version}")
    return bytearray(response)
