"""A broker in a thread that supports only client quotas, and that the test makes fail."""

import asyncio
import io
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Self

from kio.schema.alter_client_quotas.v1 import request as alter_request
from kio.schema.alter_client_quotas.v1 import response as alter_response
from kio.schema.api_versions.v0 import response as api_versions
from kio.schema.describe_client_quotas.v1 import request as describe_request
from kio.schema.describe_client_quotas.v1 import response as describe_response
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader as OldHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import f64, i16
from kio.static.protocol import ResponsePayload

from proxy.cli.quotas.client import LASTING
from proxy.cli.quotas.entity import Entity, Quotas, make_entity
from proxy.wire.api_keys import API_VERSIONS

Fault = tuple[ErrorCode, str | None]
DESCRIBE: Final = 48
ALTER: Final = 49
NO_TIME: Final = timedelta(0)


class FakeBroker:
    """Serves on a loopback port during a `with` block."""

    def __init__(self) -> None:
        self.quotas: Quotas = {}
        self.lasting: Quotas | None = None
        """Quotas without temporary values; None: like a plain broker, which has no temporary values."""
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

    def _do(self, coroutine):  # type: ignore[no-untyped-def]
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

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
        if api_key == API_VERSIONS:
            header, _ = entity_reader(OldHeader)(frame, 0)
            response = self._versions()
        elif api_key == DESCRIBE:
            schema = describe_request.DescribeClientQuotasRequest
            header, at = entity_reader(schema.__header_schema__)(frame, 0)
            response = self._describe(entity_reader(schema)(frame, at)[0])
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
        entries = [
            describe_response.EntryData(
                entity=tuple(
                    describe_response.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in reversed(entity)
                ),
                values=tuple(
                    describe_response.ValueData(key=key, value=f64(value)) for key, value in values.items()
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

    def _apply(self, entity: Entity, entry: alter_request.EntryData) -> None:
        values = self.quotas.setdefault(entity, {})
        for op in entry.ops:
            if op.remove:
                values.pop(op.key, None)
            else:
                values[op.key] = float(op.value)
        if not values:
            del self.quotas[entity]
