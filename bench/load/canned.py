"""The fake broker's frequent responses: built once per shape of request, and shared by all connections."""

import functools
import struct
from typing import Final

from bench.load.cold import ColdResponses
from bench.load.frames import TOPIC, fetch_response, produce_response
from proxy.wire.api_keys import FETCH, PRODUCE

# size, api_key, api_version, correlation_id, the client id's length
HEAD: Final = struct.Struct("!ihhih")
SMALLEST_BATCH: Final = 68
"""Bytes of a record batch v2 with an empty record."""
_I32: Final = struct.Struct("!i")
# Offsets after a v2 header in the requests of this pair: one topic of a known name and fewer than 127
# partitions, so that every compact length before them is one byte.
_PRODUCE_PARTITIONS: Final = 1 + 2 + 4 + 1 + 1 + len(TOPIC)
_FETCH_MAX_BYTES: Final = 4 + 4 + 4
_FETCH_PARTITIONS: Final = 4 + 4 + 4 + 4 + 1 + 4 + 4 + 1 + 1 + len(TOPIC)


class RejectedRequest(Exception):
    """The fake broker does not support a request, or cannot read it."""


@functools.lru_cache(maxsize=64)
def canned_produce(partitions: int) -> bytearray:
    """Return the response to a Produce of some partitions; the sender sets its correlation id."""
    return bytearray(produce_response(partitions))


@functools.lru_cache(maxsize=16)
def canned_fetch(partitions: int, max_bytes: int) -> bytearray:
    """Return the response to a Fetch of some partitions, with `max_bytes` in total; every partition has a
    batch.
    """
    return bytearray(fetch_response(partitions, max(max_bytes // partitions, SMALLEST_BATCH)))


def response_to(buffer: bytearray, at: int, size: int, cold: ColdResponses) -> bytearray:
    """Return the response frame to the whole request of `size` bytes whose int32 size is at `at`.

    Raises RejectedRequest for an API or version that the fake broker does not advertise.
    """
    _, api_key, version, _, client_length = HEAD.unpack_from(buffer, at)
    body = at + HEAD.size + max(client_length, 0) + 1
    if api_key == PRODUCE and version == 9:
        return canned_produce(buffer[body + _PRODUCE_PARTITIONS] - 1)
    if api_key == FETCH and version == 12:
        (max_bytes,) = _I32.unpack_from(buffer, body + _FETCH_MAX_BYTES)
        return canned_fetch(buffer[body + _FETCH_PARTITIONS] - 1, max_bytes)
    response = cold.response_to(bytes(buffer[at + 4 : at + 4 + size]))
    if response is None:
        raise RejectedRequest(f"no response to api key {api_key}, version {version}")
    return bytearray(response)
