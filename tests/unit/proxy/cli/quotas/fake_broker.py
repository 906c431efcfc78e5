"""A server in a thread that the test makes fail: a plain broker with client quotas, or a quota proxy with a
report of the quotas of topics and brokers.
"""

import asyncio
import io
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final, Self, TypeVar

from kio.schema.alter_client_quotas.v1 import request as alter_request
from kio.schema.alter_client_quotas.v1 import response as alter_response
from kio.schema.api_versions.v0 import response as api_versions
from kio.schema.describe_client_quotas.v1 import request as describe_request
from kio.schema.describe_client_quotas.v1 import response as describe_response
from kio.schema.describe_configs.v4 import request as configs_request
from kio.schema.describe_configs.v4 import response as configs_response
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import request as incremental_request
from kio.schema.incremental_alter_configs.v1 import response as incremental_response
from kio.schema.metadata.v12 import request as metadata_request
from kio.schema.metadata.v12 import response as metadata_response
from kio.schema.request_header.v1.header import RequestHeader as OldHeader
from kio.schema.types import BrokerId
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import f64, i16, i32, i32Timedelta
from kio.static.protocol import ResponsePayload

from proxy.admin.messages.config_resources import LAYERS
from proxy.cli.quotas.cluster.client import LASTING, OF_FILE
from proxy.cli.quotas.entity import Entity, Quotas, make_entity
from proxy.store.layer_report import ConfigReport, encode_report
from proxy.wire.api_keys import API_VERSIONS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, METADATA

Fault = tuple[ErrorCode, str | None]
Result = TypeVar("Result")
DESCRIBE: Final = 48
ALTER: Final = 49
NO_TIME: Final = i32Timedelta.parse(timedelta(0))


class FakeBroker:
    """Serves on a loopback port during a `with` block."""

    def __init__(self) -> None:
        self.quotas: Quotas = {}
        self.lasting: Quotas | None = None
        """Quotas without temporary values; None: like a plain broker, which has no temporary values."""
        self.of_file: Quotas | None = None
        """Quotas of the configuration file; None: like a plain broker, which has none."""
        self.report: ConfigReport | None = None
        """The quotas of topics and brokers; None: like a plain broker, which has none."""
        self.topics_missing: set[str] = set()
        self.config_alterations: Final[list[incremental_request.IncrementalAlterConfigsRequest]] = []
        self.config_fault: Callable[[str], Fault | None] = lambda name: None
        """The error of the alteration of a topic or broker, if any."""
        self.alterations: Final[list[alter_request.AlterClientQuotasRequest]] = []
        self.describes: Final[list[describe_request.DescribeClientQuotasRequest]] = []
        self.fault: Callable[[Entity], Fault | None] = lambda entity: None
        """The error of an entity's alteration, if any."""
        self.describe_faults: Final[list[Fault]] = []
        """Errors of the next DescribeClientQuotas, one each."""
        self.drop: Callable[[int], bool] = lambda api_key: False
        """Whether a request closes the connection without a response."""
        self.forget: set[Entity] = set()
        """Entities that are altered, but omitted from the response."""
        self.newest_version = 1
        self.connections = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._do(self._end_connections())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def stop(self) -> None:
        """Stop accepting connections."""
        self._loop.call_soon_threadsafe(self._server.close)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _do(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _end_connections(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                if self.drop(int.from_bytes(frame[:2], "big")):
                    return
                writer.write(self._response(frame))
                await writer.drain()
        except (EOFError, OSError):
            pass
        finally:
            writer.close()

    def _response(self, frame: bytes) -> bytes:
        api_key = int.from_bytes(frame[:2], "big")
        response: ResponsePayload
        header: Any
        if api_key == API_VERSIONS:
            header, _ = entity_reader(OldHeader)(frame, 0)
            response = self._versions()
        elif api_key == DESCRIBE:
            schema = describe_request.DescribeClientQuotasRequest
            header, at = entity_reader(schema.__header_schema__)(frame, 0)
            response = self._describe(entity_reader(schema)(frame, at)[0])
        elif api_key == DESCRIBE_CONFIGS:
            describe_configs = configs_request.DescribeConfigsRequest
            header, at = entity_reader(describe_configs.__header_schema__)(frame, 0)
            response = self._describe_configs(entity_reader(describe_configs)(frame, at)[0])
        elif api_key == INCREMENTAL_ALTER_CONFIGS:
            incremental = incremental_request.IncrementalAlterConfigsRequest
            header, at = entity_reader(incremental.__header_schema__)(frame, 0)
            response = self._alter_configs(entity_reader(incremental)(frame, at)[0])
        elif api_key == METADATA:
            asked = metadata_request.MetadataRequest
            header, at = entity_reader(asked.__header_schema__)(frame, 0)
            response = self._metadata(entity_reader(asked)(frame, at)[0])
        else:
            assert api_key == ALTER
            other = alter_request.AlterClientQuotasRequest
            header, at = entity_reader(other.__header_schema__)(frame, 0)
            response = self._alter(entity_reader(other)(frame, at)[0])
        out = io.BytesIO()
        entity_writer(response.__header_schema__)(
            out, response.__header_schema__(correlation_id=header.correlation_id)
        )
        entity_writer(type(response))(out, response)
        return len(out.getvalue()).to_bytes(4, "big") + out.getvalue()

    def _versions(self) -> api_versions.ApiVersionsResponse:
        newest = i16(self.newest_version)
        keys = tuple(
            api_versions.ApiVersion(api_key=i16(key), min_version=i16(0), max_version=newest)
            for key in (DESCRIBE, ALTER)
        )
        return api_versions.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=keys)

    def _describe(
        self, request: describe_request.DescribeClientQuotasRequest
    ) -> describe_response.DescribeClientQuotasResponse:
        self.describes.append(request)
        code, message = self.describe_faults.pop(0) if self.describe_faults else (ErrorCode.none, None)
        parts = {(part.entity_type, part.match) for part in request.components}
        quotas = self.quotas
        if (LASTING, None) in parts:
            parts.remove((LASTING, None))
            quotas = self.lasting or {}
            if self.lasting is None and code == ErrorCode.none:
                code = ErrorCode.unsupported_version
        if (LASTING, OF_FILE) in parts:
            parts.remove((LASTING, OF_FILE))
            quotas = self.of_file or {}
            if self.of_file is None and code == ErrorCode.none:
                code = ErrorCode.unsupported_version
        entries = [
            describe_response.EntryData(
                entity=tuple(
                    describe_response.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in reversed(entity)
                ),
                values=tuple(
                    describe_response.ValueData(key=key, value=f64(float(value)))
                    for key, value in values.items()
                ),
            )
            for entity, values in quotas.items()
            if (parts == set(entity) if request.strict else parts <= set(entity))
        ]
        return describe_response.DescribeClientQuotasResponse(
            throttle_time=NO_TIME,
            error_code=code,
            error_message=message,
            entries=tuple(entries) if code == ErrorCode.none else None,
        )

    def _alter(
        self, request: alter_request.AlterClientQuotasRequest
    ) -> alter_response.AlterClientQuotasResponse:
        self.alterations.append(request)
        results: list[alter_response.EntryData] = []
        for entry in request.entries:
            entity = make_entity((part.entity_type, part.entity_name) for part in entry.entity)
            code, message = self.fault(entity) or (ErrorCode.none, None)
            if code == ErrorCode.none and not request.validate_only:
                self._apply(entity, entry)
            if entity not in self.forget:
                echo = tuple(
                    alter_response.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in reversed(entity)
                )
                results.append(alter_response.EntryData(error_code=code, error_message=message, entity=echo))
        results.reverse()  # a broker's are in no order either
        return alter_response.AlterClientQuotasResponse(throttle_time=NO_TIME, entries=tuple(results))

    def _describe_configs(
        self, request: configs_request.DescribeConfigsRequest
    ) -> configs_response.DescribeConfigsResponse:
        [resource] = request.resources
        assert resource.resource_name == "<default>"
        configs: tuple[configs_response.DescribeConfigsResourceResult, ...] = ()
        if self.report is not None:
            config = configs_response.DescribeConfigsResourceResult(
                name=LAYERS,
                value=encode_report(self.report),
                read_only=False,
                is_sensitive=False,
                synonyms=(),
                documentation=None,
            )
            configs = (config,)
        result = configs_response.DescribeConfigsResult(
            error_code=ErrorCode.none if configs else ErrorCode.invalid_topic_exception,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )
        return configs_response.DescribeConfigsResponse(throttle_time=NO_TIME, results=(result,))

    def _alter_configs(
        self, request: incremental_request.IncrementalAlterConfigsRequest
    ) -> incremental_response.IncrementalAlterConfigsResponse:
        self.config_alterations.append(request)
        results = []
        for resource in request.resources:
            code, message = self.config_fault(resource.resource_name) or (ErrorCode.none, None)
            results.append(
                incremental_response.AlterConfigsResourceResponse(
                    error_code=code,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        return incremental_response.IncrementalAlterConfigsResponse(
            throttle_time=NO_TIME, responses=tuple(results)
        )

    def _metadata(self, request: metadata_request.MetadataRequest) -> metadata_response.MetadataResponse:
        """One broker with node id 1: this server. It has all topics but `topics_missing`."""
        topics = tuple(
            metadata_response.MetadataResponseTopic(
                error_code=ErrorCode.unknown_topic_or_partition
                if asked.name in self.topics_missing
                else ErrorCode.none,
                name=asked.name,
                topic_id=None,
                partitions=(),
            )
            for asked in request.topics or ()
        )
        broker = metadata_response.MetadataResponseBroker(
            node_id=BrokerId(1), host="127.0.0.1", port=i32(self.port)
        )
        return metadata_response.MetadataResponse(
            throttle_time=NO_TIME, brokers=(broker,), topics=topics, controller_id=BrokerId(1)
        )

    def _apply(self, entity: Entity, entry: alter_request.EntryData) -> None:
        values = self.quotas.setdefault(entity, {})
        for op in entry.ops:
            if op.remove:
                values.pop(op.key, None)
            else:
                values[op.key] = float(op.value)
        if not values:
            del self.quotas[entity]
