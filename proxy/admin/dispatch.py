"""Requests that the proxy answers in the brokers' place: from the request's frame to the answer's."""

from typing import Final

from proxy.admin.authority import Authority
from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.configs.alter_describe import ResourceConfigs
from proxy.admin.configs.create_topics import TopicCreations
from proxy.admin.messages.client_quotas import FLEXIBLE_FROM
from proxy.admin.mutations.mutations import Broker, Reply
from proxy.relay.intercepted import Intercepted
from proxy.wire import intercepted
from proxy.wire.api_keys import ALTER_CLIENT_QUOTAS, CREATE_TOPICS, DESCRIBE_CLIENT_QUOTAS, DESCRIBE_CONFIGS
from proxy.wire.apis import read_request_header
from proxy.wire.errors import UnsupportedVersion
from proxy.wire.reader import Reader

NEWEST: Final = {
    api.key: api.newest
    for api in (
        intercepted.CREATE_TOPICS,
        intercepted.DESCRIBE_CONFIGS,
        intercepted.ALTER_CONFIGS,
        intercepted.INCREMENTAL_ALTER_CONFIGS,
        intercepted.DESCRIBE_CLIENT_QUOTAS,
        intercepted.ALTER_CLIENT_QUOTAS,
    )
}
"""The APIs that the proxy answers, each from version 0 on."""


class AdminApis:
    """Answers intercepted requests."""

    api_keys: Final = frozenset(NEWEST)

    def __init__(
        self,
        client_quotas: ClientQuotas,
        configs: ResourceConfigs,
        creations: TopicCreations,
        authority: Authority,
    ) -> None:
        self.authority: Final = authority
        self._client_quotas: Final = client_quotas
        self._configs: Final = configs
        self._creations: Final = creations

    async def answer(self, request: Intercepted, broker: Broker) -> Reply:
        """The answer. Raises ProtocolError where a broker would end the connection, and
        RelayError where the broker's part of the answer is none.
        """
        header = request.header
        if header.api_version > NEWEST[header.api_key]:
            raise UnsupportedVersion(
                f"the API with key {header.api_key} is asked at version {header.api_version}; "
                f"ApiVersions offers up to {NEWEST[header.api_key]}"
            )
        if header.api_key == CREATE_TOPICS:
            return await self._creations.answer(request, broker)
        if header.api_key == DESCRIBE_CONFIGS:
            return Reply(await self._configs.describe(request, broker))
        if header.api_key not in (DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS):
            return Reply(await self._configs.alter(request, broker))
        flexible = header.api_version >= FLEXIBLE_FROM
        reader = Reader([request.frame])
        read_request_header(reader)
        if flexible:
            reader.skip_tags()
        if header.api_key == DESCRIBE_CLIENT_QUOTAS:
            may = await broker.rights.may_describe()
            return Reply(await self._client_quotas.describe(reader, flexible, header.correlation_id, may))
        may = await broker.rights.may_alter()
        who = request.exchange.client
        return Reply(await self._client_quotas.alter(reader, flexible, header.correlation_id, who, may))
