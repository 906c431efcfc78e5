"""MetadataBroker: a broker on a real socket that responds to ApiVersions and Metadata only."""

import asyncio
import io
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.api_versions.v0 import response as api_versions
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import response as metadata
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.request_header.v1.header import RequestHeader as OldHeader
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32, i32Timedelta
from kio.static.protocol import ResponsePayload

from proxy.wire.api_keys import API_VERSIONS

ORDERS: Final = UUID(int=1)


class MetadataBroker:
    """Node 1 of the cluster `c`, which has one topic, `orders`."""

    def __init__(self) -> None:
        self.asked: list[MetadataRequest] = []
        self.partitions = [(1, (1, 2), (1,)), (-1, (2, 3), (2,))]
        """Leader, replicas and ISR."""
        self.fault = ErrorCode.none
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "MetadataBroker":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                writer.write(self._response(frame))
        except (EOFError, ConnectionError):
            writer.close()

    def _response(self, frame: bytes) -> bytes:
        response: ResponsePayload
        if int.from_bytes(frame[:2], "big") == API_VERSIONS:
            correlation_id = entity_reader(OldHeader)(frame, 0)[0].correlation_id
            newest = api_versions.ApiVersion(api_key=i16(3), min_version=i16(0), max_version=i16(12))
            response = api_versions.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=(newest,))
        else:
            header, at = entity_reader(MetadataRequest.__header_schema__)(frame, 0)
            correlation_id = header.correlation_id
            self.asked.append(entity_reader(MetadataRequest)(frame, at)[0])
            response = self._metadata()
        out = io.BytesIO()
        schema = response.__header_schema__
        entity_writer(schema)(out, schema(correlation_id=correlation_id))
        entity_writer(type(response))(out, response)
        return len(out.getvalue()).to_bytes(4, "big") + out.getvalue()

    def _metadata(self) -> metadata.MetadataResponse:
        host, port = self.address
        topic = metadata.MetadataResponseTopic(
            error_code=self.fault,
            name=TopicName("orders"),
            topic_id=ORDERS,
            partitions=tuple(
                metadata.MetadataResponsePartition(
                    error_code=ErrorCode.none,
                    partition_index=i32(number),
                    leader_id=BrokerId(leader),
                    replica_nodes=tuple(map(BrokerId, replicas)),
                    isr_nodes=tuple(map(BrokerId, isr)),
                )
                for number, (leader, replicas, isr) in enumerate(self.partitions)
            ),
        )
        node = metadata.MetadataResponseBroker(node_id=BrokerId(1), host=host, port=i32(port))
        return metadata.MetadataResponse(
            throttle_time=i32Timedelta.parse(timedelta(0)),
            brokers=(node,),
            cluster_id="c",
            topics=(topic,) if self.asked[-1].topics != () else (),
        )
