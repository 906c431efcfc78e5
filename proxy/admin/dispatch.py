"""Requests that the proxy answers in the brokers' place: from the request's frame to the answer's."""

from typing import Final

from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.quota_messages import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS, FLEXIBLE_FROM
from proxy.relay.intercepted import Intercepted
from proxy.wire.apis import read_request_header
from proxy.wire.errors import UnsupportedVersion
from proxy.wire.reader import Reader

NEWEST: Final = {DESCRIBE_CLIENT_QUOTAS: 1, ALTER_CLIENT_QUOTAS: 1}
"""The APIs that the proxy answers, each from version 0 on."""


class AdminApis:
    """Answers intercepted requests."""

    api_keys: Final = frozenset(NEWEST)

    def __init__(self, client_quotas: ClientQuotas) -> None:
        self._client_quotas: Final = client_quotas

    async def answer(self, request: Intercepted) -> bytes:
        """The answer as a whole frame. Raises ProtocolError where a broker would end the connection.

        Whoever gets this far may look and change: this is the one place where that would be refused.
        """
        header = request.header
        if header.api_version > NEWEST[header.api_key]:
            raise UnsupportedVersion(
                f"the API with key {header.api_key} is asked at version {header.api_version}; "
                f"ApiVersions offers up to {NEWEST[header.api_key]}"
            )
        flexible = header.api_version >= FLEXIBLE_FROM
        reader = Reader([request.frame])
        read_request_header(reader)
        if flexible:
            reader.skip_tags()
        if header.api_key == DESCRIBE_CLIENT_QUOTAS:
            return await self._client_quotas.describe(reader, flexible, header.correlation_id)
        who = request.exchange.client.who
        return await self._client_quotas.alter(reader, flexible, header.correlation_id, who)
