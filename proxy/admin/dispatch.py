"""Intercepted requests, handed to the handler of their API."""

from typing import Final

from proxy.admin.authority import Authority
from proxy.admin.broker import Broker, Reply
from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.configs.alter_describe import ResourceConfigs
from proxy.admin.configs.create_topics import TopicCreations
from proxy.admin.messages.alter_configs import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from proxy.admin.messages.client_quotas import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from proxy.admin.messages.create_partitions import CREATE_PARTITIONS
from proxy.admin.messages.create_topics import CREATE_TOPICS
from proxy.admin.messages.delete_topics import DELETE_TOPICS
from proxy.admin.messages.describe_configs import DESCRIBE_CONFIGS
from proxy.relay.intercepted import Intercepted
from proxy.wire.registry import ApiTable

_ALWAYS: Final = {
    api.key: api
    for api in (
        CREATE_TOPICS.versions,
        DESCRIBE_CONFIGS,
        ALTER_CONFIGS,
        INCREMENTAL_ALTER_CONFIGS,
        DESCRIBE_CLIENT_QUOTAS,
        ALTER_CLIENT_QUOTAS,
    )
}
APIS: Final = ApiTable([*_ALWAYS.values(), DELETE_TOPICS.versions, CREATE_PARTITIONS.versions])
"""Of clients' relays. DeleteTopics and CreatePartitions are intercepted while there is a mutation quota."""


class AdminApis:
    """Answers the requests that the proxy always intercepts."""

    api_keys: Final = frozenset(_ALWAYS)

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
        """Answer a request.

        Raises ProtocolError if a broker would close the connection, RelayError if the broker's response to
        the proxy does not parse.
        """
        header = request.header
        api = _ALWAYS[header.api_key]
        api.check_version(header.api_version)
        if api is CREATE_TOPICS.versions:
            return await self._creations.answer(request, broker)
        if api is DESCRIBE_CONFIGS:
            return Reply(await self._configs.describe(request, broker))
        if api is DESCRIBE_CLIENT_QUOTAS:
            return Reply(await self._client_quotas.describe(request, broker.rights))
        if api is ALTER_CLIENT_QUOTAS:
            return Reply(await self._client_quotas.alter(request, broker.rights))
        return Reply(await self._configs.alter(request, broker))
