"""The fake broker's ApiVersions and Metadata, asked and read by kio at every version it advertises."""

import uuid
from typing import Any

import pytest
from kio.index import load_payload_module, load_request_schema, load_response_schema
from kio.serial import entity_reader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32

from bench.load.cold import TOPIC_ID, VERSIONS, ColdResponses
from bench.load.frames import frame
from proxy.wire.api_keys import API_VERSIONS, METADATA

BROKER = ColdResponses("127.0.0.1", 19092, partitions=3)


def request(api_key: int, version: int, payload: Any) -> bytes:
    header_schema: Any = payload.__header_schema__
    header = header_schema(
        request_api_key=i16(api_key),
        request_api_version=i16(version),
        correlation_id=i32(42),
        client_id="refresher",
    )
    return frame(header, payload)[4:]


def respond(api_key: int, version: int, payload: Any) -> Any:
    response = BROKER.response_to(request(api_key, version, payload))
    assert response is not None
    return decode(response, api_key, version)


def decode(frame: bytes, api_key: int, version: int) -> Any:
    schema: Any = load_response_schema(api_key, version)
    header, length = entity_reader(schema.__header_schema__)(frame, 4)
    assert header.correlation_id == 42
    response, rest = entity_reader(schema)(frame, 4 + length)
    assert 4 + length + rest == len(frame)
    return response


def ask_api_versions(version: int) -> Any:
    schema: Any = load_request_schema(API_VERSIONS, version)
    fields = {"client_software_name": "bench", "client_software_version": "1"} if version >= 3 else {}
    return schema(**fields)


def ask_metadata(version: int, topics: list[dict[str, object]] | None) -> Any:
    module: Any = load_payload_module(METADATA, version, EntityType.request)
    entries = None if topics is None else tuple(module.MetadataRequestTopic(**entry) for entry in topics)
    fields: dict[str, object] = {"topics": entries}
    if 8 <= version <= 10:
        fields["include_cluster_authorized_operations"] = False
    if version >= 8:
        fields["include_topic_authorized_operations"] = False
    return module.MetadataRequest(**fields)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_are_what_the_broker_responses(version: int) -> None:
    response = respond(API_VERSIONS, version, ask_api_versions(version))
    assert response.error_code == 0
    advertised = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    assert advertised == VERSIONS


def test_an_unknown_api_versions_version_gets_version_0() -> None:
    newest = bytearray(request(API_VERSIONS, 4, ask_api_versions(4)))
    newest[2:4] = b"\x00\x63"
    response = BROKER.response_to(bytes(newest))
    assert response is not None
    assert decode(response, API_VERSIONS, 0).error_code == 35


@pytest.mark.parametrize("version", range(13))
def test_metadata_of_all_topics(version: int) -> None:
    every: list[dict[str, object]] | None = None if version else []
    response = respond(METADATA, version, ask_metadata(version, every))
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "127.0.0.1", 19092)
    (topic,) = response.topics
    assert (topic.name, topic.error_code) == ("bench", 0)
    assert [(part.partition_index, part.leader_id) for part in topic.partitions] == [(0, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize("version", range(1, 13))
def test_metadata_of_no_topics(version: int) -> None:
    response = respond(METADATA, version, ask_metadata(version, []))
    assert len(response.brokers) == 1
    assert response.topics == ()


@pytest.mark.parametrize("version", [0, 4, 9])
def test_metadata_of_named_topics(version: int) -> None:
    response = respond(METADATA, version, ask_metadata(version, [{"name": "bench"}, {"name": "other"}]))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("bench", 0), ("other", 3)]


def test_metadata_by_topic_id() -> None:
    other = uuid.uuid4()
    entries: list[dict[str, object]] = [
        {"topic_id": TOPIC_ID, "name": None},
        {"topic_id": other, "name": None},
    ]
    response = respond(METADATA, 12, ask_metadata(12, entries))
    found, missing = response.topics
    assert (found.name, found.topic_id, found.error_code) == ("bench", TOPIC_ID, 0)
    assert (missing.topic_id, missing.error_code) == (other, 100)


def test_what_is_not_advertised_has_no_response() -> None:
    assert BROKER.response_to(b"\x00\x13\x00\x07" + bytes(8)) is None
    assert BROKER.response_to(b"\x00\x03\x00\x0d" + bytes(8)) is None
