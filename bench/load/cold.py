"""The fake broker's rare responses, encoded by kio at any version: ApiVersions and Metadata."""

import dataclasses
import struct
import uuid
from datetime import timedelta
from typing import Any, Final

from kio.index import load_payload_module, load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.serial import entity_reader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta

from bench.load.frames import TOPIC, frame
from proxy.wire.api_keys import API_VERSIONS, FETCH, METADATA, PRODUCE

# All that the fake broker supports: (lowest, highest) version by API key.
VERSIONS: Final = {PRODUCE: (9, 9), FETCH: (12, 12), METADATA: (0, 12), API_VERSIONS: (0, 4)}
NODE_ID: Final = BrokerId(1)
TOPIC_ID: Final = uuid.UUID("6d1f3a52-0f43-4d0c-9a55-0b7d0f2f3c11")
_API: Final = struct.Struct("!hh")
_NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))


def _of(schema: Any, **values: object) -> Any:
    """Build an entity from the `values` that its version has; other fields keep their defaults."""
    known = {field.name for field in dataclasses.fields(schema)}
    return schema(**{name: value for name, value in values.items() if name in known})


class ColdResponses:
    """Responds as one broker at `host`:`port` that leads every partition of one topic."""

    def __init__(self, host: str, port: int, partitions: int) -> None:
        self.host = host
        self.port = port
        self.partitions = partitions

    def response_to(self, request: bytes) -> bytes | None:
        """Return the response frame to a whole request (without its size); None if it is not supported."""
        api_key, version = _API.unpack_from(request)
        lowest, highest = VERSIONS.get(api_key, (0, -1))
        readable = lowest <= version <= highest
        if api_key == API_VERSIONS:
            return self._api_versions(request, version if readable else 0, readable)
        if api_key == METADATA and readable:
            return self._metadata(request, version)
        return None

    def _api_versions(self, request: bytes, version: int, readable: bool) -> bytes:
        """KIP-511: an unknown version gets a v0 response with UNSUPPORTED_VERSION."""
        schema = load_payload_module(API_VERSIONS, version, EntityType.response)
        keys = tuple(
            _of(schema.ApiVersion, api_key=i16(key), min_version=i16(low), max_version=i16(high))
            for key, (low, high) in VERSIONS.items()
        )
        error_code = ErrorCode.none if readable else ErrorCode.unsupported_version
        payload = _of(
            schema.ApiVersionsResponse, error_code=error_code, api_keys=keys, throttle_time=_NO_THROTTLE
        )
        return _respond(request, payload)

    def _metadata(self, request: bytes, version: int) -> bytes:
        """Return the response to Metadata, with this broker alone."""
        schema = load_payload_module(METADATA, version, EntityType.response)
        broker = _of(
            schema.MetadataResponseBroker, node_id=NODE_ID, host=self.host, port=i32(self.port), rack=None
        )
        payload = _of(
            schema.MetadataResponse,
            throttle_time=_NO_THROTTLE,
            brokers=(broker,),
            cluster_id="bench",
            controller_id=NODE_ID,
            topics=tuple(self._topic(schema, wanted) for wanted in _asked_topics(request, version)),
        )
        return _respond(request, payload)

    def _topic(self, schema: Any, wanted: Any) -> Any:
        """The metadata of one topic; `wanted` is the request's entry, or None for the broker's own topic."""
        asked_id = getattr(wanted, "topic_id", None)
        name = TOPIC if wanted is None or asked_id == TOPIC_ID else wanted.name
        known = name == TOPIC
        missing = ErrorCode.unknown_topic_id if asked_id else ErrorCode.unknown_topic_or_partition
        return _of(
            schema.MetadataResponseTopic,
            error_code=ErrorCode.none if known else missing,
            name=name,
            topic_id=TOPIC_ID if known else asked_id,
            is_internal=False,
            partitions=self._partitions(schema) if known else (),
        )

    def _partitions(self, schema: Any) -> tuple[Any, ...]:
        return tuple(
            _of(
                schema.MetadataResponsePartition,
                error_code=ErrorCode.none,
                partition_index=i32(index),
                leader_id=NODE_ID,
                leader_epoch=i32(0),
                replica_nodes=(NODE_ID,),
                isr_nodes=(NODE_ID,),
                offline_replicas=(),
            )
            for index in range(self.partitions)
        )


def _asked_topics(request: bytes, version: int) -> tuple[Any, ...]:
    """The request's topic entries; (None,) if it asks for all topics: null, or an empty array at v0."""
    schema: Any = load_request_schema(METADATA, version)
    _header, header_size = entity_reader(schema.__header_schema__)(request, 0)
    payload: Any = entity_reader(schema)(request, header_size)[0]
    every = payload.topics is None or (version == 0 and not payload.topics)
    return (None,) if every else tuple(payload.topics)


def _respond(request: bytes, payload: Any) -> bytes:
    """Encode the response frame with the correlation id of the request."""
    (correlation_id,) = struct.unpack_from("!i", request, 4)
    return frame(payload.__header_schema__(correlation_id=i32(correlation_id)), payload)
