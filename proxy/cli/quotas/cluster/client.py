"""QuotaClient: AlterClientQuotas and DescribeClientQuotas (KIP-546), with retries."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse
from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest
from kio.schema.describe_client_quotas.v1.response import DescribeClientQuotasResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import f64, i8
from kio.static.protocol import RequestPayload, ResponsePayload

from proxy.admin.messages.client_quotas import BACK_TO_FILE, EXPIRES_AT_MS
from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.retries import (
    PAUSES,
    AlterationResult,
    RejectedAlteration,
    alter_again,
    ask_again,
    reason,
)
from proxy.cli.quotas.entity import Entity, Quotas, make_entity
from proxy.errors import BadResponse, QuotaProxyError, UpstreamUnavailable
from proxy.upstream.broker_connection import BrokerConnection, connect_to_any
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.failures import explain
from proxy.wire.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS, api_name

if TYPE_CHECKING:
    from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest

Response = TypeVar("Response", bound=ResponsePayload)
MAX_ENTITIES: Final = 1000
MAX_OPS: Final = 5000
"""Bounds of one request. Kafka's controller rejects a request that writes more than 10,000 records, one per
key; a broker responds to one of this size long before the timeout."""
REQUEST_SECONDS: Final = 30.0
"""The timeout of a request."""
PATIENCE_SECONDS: Final = 60.0
"""A request is not retried after this time, so a server that never responds gets it twice."""
API_KEYS: Final = (DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS)
VERSION: Final = 1
"""The version of these APIs that this client uses; Kafka has it since 2.8."""
_EXACT: Final = i8(0)
_DEFAULT: Final = i8(1)
_ANY: Final = i8(2)
LASTING: Final = "lasting"
"""The proxy's own filter type: quotas without temporary values (docs/quotas-as-code.md)."""
OF_FILE: Final = "file"
"""The name of LASTING for the quotas of the proxy's configuration file."""


class QuotasRejected(QuotaProxyError):
    """The server rejected a whole request. str() has its reason, `code` its error code."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code: Final = code


class _NoResponse(UpstreamUnavailable):
    """A server accepted connections, but sent no response to any attempt."""


class QuotaClient:
    """The client quotas of a server, a proxy or any broker, at the first of these addresses that responds.

    Raises UpstreamUnavailable if none does.
    """

    def __init__(
        self,
        cluster: ClusterAccess,
        *,
        request_seconds: float = REQUEST_SECONDS,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._cluster: Final = cluster
        self._request_seconds: Final = request_seconds
        self._pauses: Final = tuple(pauses)
        self._broker: BrokerConnection | None = None
        self._responded = False
        """Whether the server has responded before: only then is a request without a response retried."""

    async def __aenter__(self) -> Self:
        try:
            await self._connect()
        except UpstreamUnavailable as error:
            hint = "is --bootstrap the proxy's bootstrap port, or a broker's?"
            raise UpstreamUnavailable(f"cannot connect to a server: {error}; {hint}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._disconnect()

    async def describe(self, parts: Entity = (), *, exact: bool = False) -> Quotas:
        """Quotas of the entities that contain these parts; with `exact`, of the entity of these parts."""
        components = tuple(
            ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
            for kind, name in parts
        )
        return await self._describe(DescribeClientQuotasRequest(components=components, strict=exact))

    async def describe_lasting(self) -> Quotas:
        """All quotas without temporary values."""
        lasting = await self._describe_layer(_ANY, None)
        # All quotas of a plain broker are lasting.
        return await self.describe() if lasting is None else lasting

    async def describe_file(self) -> Quotas | None:
        """The lasting quotas of the proxy's configuration file; None from a server that is no proxy."""
        return await self._describe_layer(_EXACT, OF_FILE)

    async def _describe_layer(self, match_type: i8, match: str | None) -> Quotas | None:
        """None if the server does not know the entity type LASTING, as a plain broker does not."""
        layer = ComponentData(entity_type=LASTING, match_type=match_type, match=match)
        try:
            return await self._describe(DescribeClientQuotasRequest(components=(layer,), strict=False))
        except QuotasRejected as rejected:
            if rejected.code not in (ErrorCode.unsupported_version, ErrorCode.invalid_request):
                raise
            return None

    async def _describe(self, request: DescribeClientQuotasRequest) -> Quotas:
        """Send a request, again while its error is retriable. Raises QuotasRejected."""
        response = await ask_again(
            lambda: self.ask(request, DescribeClientQuotasResponse),
            lambda response: response.error_code,
            self._pauses,
        )
        if response.error_code != ErrorCode.none:
            raise QuotasRejected(response.error_code, reason(response.error_code, response.error_message))
        return {
            make_entity((part.entity_type, part.entity_name) for part in entry.entity): {
                value.key: float(value.value) for value in entry.values
            }
            for entry in response.entries or ()
        }

    async def alter(
        self, entries: Sequence[EntityAlteration], *, validate_only: bool = False
    ) -> AsyncIterator[tuple[int, list[RejectedAlteration]]]:
        """Send the alterations in several requests. After each, yield the number of entities done so far, and
        the rejected ones of this request.

        A rejection does not stop the rest. No entity may occur twice.
        """
        settled = 0
        for batch in batches(entries):
            try:
                rejections = await self._alter(batch, validate_only)
            except _NoResponse as error:
                rejections = [RejectedAlteration(entry.entity, str(error)) for entry in batch]
            except UpstreamUnavailable as error:
                rest = f"{len(entries) - settled} of {len(entries)} entities were not sent"
                raise UpstreamUnavailable(f"{error}; {rest}: run the same command again") from error
            settled += len(batch)
            yield settled, rejections

    async def _alter(
        self, batch: Sequence[EntityAlteration], validate_only: bool
    ) -> list[RejectedAlteration]:
        """Send one batch; again those entries whose errors are retriable. Return the rejected ones."""
        # Commands that only read share this file's imports.
        from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse

        async def send(entries: Iterable[EntityAlteration]) -> list[AlterationResult]:
            response = await self.ask(_alter_request(entries, validate_only), AlterClientQuotasResponse)
            return [
                AlterationResult(
                    make_entity((part.entity_type, part.entity_name) for part in result.entity),
                    result.error_code,
                    result.error_message,
                )
                for result in response.entries
            ]

        return await alter_again(batch, send, _rejection, self._pauses)

    async def ask(self, request: RequestPayload, kind: type[Response]) -> Response:
        """The response. Without one, the request is retried if the server has responded before."""
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + PATIENCE_SECONDS
        pauses = iter(self._pauses if self._responded else ())
        while True:
            try:
                broker = self._broker or await self._connect()
                async with asyncio.timeout(self._request_seconds):
                    response = await broker.ask(request, kind)
                self._responded = True
                return response
            except BadResponse:
                self._disconnect()
                raise
            except UpstreamUnavailable:
                pause = next(pauses, None)
                if pause is None:
                    raise
            except (OSError, EOFError) as error:
                self._disconnect()
                pause = next(pauses, None)
                if pause is None or clock() > give_up_at:
                    raise _NoResponse(explain(error, self._request_seconds)) from error
            await asyncio.sleep(pause)

    async def _connect(self) -> BrokerConnection:
        self._broker = await connect_to_any(
            self._cluster.bootstrap, self._cluster.access, self._cluster.connect_seconds, _check
        )
        return self._broker

    def _disconnect(self) -> None:
        if self._broker is not None:
            self._broker.close()
            self._broker = None


async def _check(broker: BrokerConnection) -> None:
    """Raise BadResponse if the server lacks one of the APIs."""
    response = await broker.ask(ApiVersionsRequest(), ApiVersionsResponse)
    known = {int(api.api_key): api for api in response.api_keys}
    for key in API_KEYS:
        api = known.get(key)
        if api is None or not api.min_version <= VERSION <= api.max_version:
            raise BadResponse(f"does not support {api_name(key)} v{VERSION}, which Kafka has since 2.8")


def batches(
    entries: Iterable[EntityAlteration], max_entities: int = MAX_ENTITIES, max_ops: int = MAX_OPS
) -> Iterator[list[EntityAlteration]]:
    """Split the alterations into requests, in order. One with more than `max_ops` ops is sent alone."""
    batch: list[EntityAlteration] = []
    ops = 0
    for entry in entries:
        if batch and (len(batch) == max_entities or ops + len(entry.values) > max_ops):
            yield batch
            batch, ops = [], 0
        batch.append(entry)
        ops += len(entry.values)
    if batch:
        yield batch


def _alter_request(entries: Iterable[EntityAlteration], validate_only: bool) -> "AlterClientQuotasRequest":
    from kio.schema.alter_client_quotas.v1 import request as alter_request

    return alter_request.AlterClientQuotasRequest(
        validate_only=validate_only,
        entries=tuple(
            alter_request.EntryData(
                entity=tuple(
                    alter_request.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entry.entity
                ),
                ops=tuple(
                    alter_request.OpData(
                        key=key, value=f64(0.0 if value is None else value), remove=value is None
                    )
                    for key, value in _ops(entry)
                ),
            )
            for entry in entries
        ),
    )


def _ops(entry: EntityAlteration) -> Iterator[tuple[str, float | None]]:
    """The keys and values of the entry; None removes a key."""
    for key, value in entry.values.items():
        assert not isinstance(value, str), "a config is no client quota"
        yield key, value
    if entry.back_to_file:
        yield BACK_TO_FILE, 1.0


def _rejection(entry: EntityAlteration, result: AlterationResult) -> str:
    why = reason(result.code, result.message)
    message = result.message or ""
    if EXPIRES_AT_MS in entry.values and f"configuration key {EXPIRES_AT_MS}" in message:
        return f"{why} (only a quota proxy supports temporary quotas, a plain Kafka broker does not)"
    if entry.back_to_file and f"configuration key {BACK_TO_FILE}" in message:
        return f"{why} (only a quota proxy has a configuration file to return to)"
    return why
