"""The fake broker finds its way in the requests that the driver sends."""

from typing import Any

import pytest
from kio.index import load_response_schema
from kio.serial import entity_reader

from bench.load import frames
from bench.load.canned import RejectedRequest, response_to
from bench.load.cold import ColdResponses

COLD = ColdResponses("127.0.0.1", 19092, partitions=64)
CLIENT_IDS = ["", "t", "tenant-" * 30]


def respond(request: bytes, api_key: int, version: int) -> Any:
    """The decoded response to a request that stands somewhere in a buffer."""
    buffer = bytearray(b"before" + request + b"after")
    response = bytes(response_to(buffer, len("before"), len(request) - 4, COLD))
    schema: Any = load_response_schema(api_key, version)
    _header, length = entity_reader(schema.__header_schema__)(response, 4)
    return entity_reader(schema)(response, 4 + length)[0]


@pytest.mark.parametrize("client_id", CLIENT_IDS)
@pytest.mark.parametrize("partitions", [1, 24, 126])
def test_produce_gets_a_response_for_every_partition(client_id: str, partitions: int) -> None:
    response = respond(frames.produce_request(client_id, partitions, 100), 0, 9)
    assert len(response.responses[0].partition_responses) == partitions


@pytest.mark.parametrize("client_id", CLIENT_IDS)
@pytest.mark.parametrize(("partitions", "size"), [(1, 100_000), (24, 1024), (2, 10)])
def test_fetch_gets_what_it_asks_for(client_id: str, partitions: int, size: int) -> None:
    response = respond(frames.fetch_request(client_id, partitions, size), 1, 12)
    sizes = [len(part.records) for part in response.responses[0].partitions]
    assert sizes == [max(size, 68)] * partitions


def test_another_version_is_rejected_by_name() -> None:
    request = bytearray(frames.produce_request("t", 1, 100))
    request[6:8] = b"\x00\x08"
    with pytest.raises(RejectedRequest, match="api key 0, version 8"):
        response_to(request, 0, len(request) - 4, COLD)
