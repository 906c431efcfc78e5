"""Intercepted requests, handed to the handler of their API behind the gate of protected topics."""

from typing import Final

from proxy.admin.authority import Authority
from proxy.admin.broker import Broker, Reply
from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.configs.alter import AlterConfigs
from proxy.admin.configs.create_topics import TopicCreations
from proxy.admin.configs.describe import DescribeConfigs
from proxy.admin.messages.alter_configs import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from proxy.admin.messages.client_quotas import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from proxy.admin.messages.create_partitions import CREATE_PARTITIONS
from proxy.admin.messages.create_topics import CREATE_TOPICS
from proxy.admin.messages.delete_records import DELETE_RECORDS
from proxy.admin.messages.delete_topics import DELETE_TOPICS
from proxy.admin.messages.describe_configs import DESCRIBE_CONFIGS
from proxy.admin.messages.fields import frame
from proxy.admin.messages.streams_groups import HEARTBEAT
from proxy.admin.mutations.growth_bound import answer_growth
from proxy.admin.mutations.mutations import ControllerMutations
from proxy.admin.protected_topics import API_KEYS as GUARDED
from proxy.admin.protected_topics import ProtectedTopicsGate
from proxy.relay.intercepted import Intercepted
from proxy.wire.api_keys import METADATA, STREAMS_GROUP_HEARTBEAT
from proxy.wire.apis.registry import ApiTable
from proxy.wire.protected_topics import ProtectedTopics

_INTERCEPTED: Final = {
    api.key: api
    for api in (
        CREATE_TOPICS.versions,
        DELETE_TOPICS.versions,
        DELETE_RECORDS.versions,
        CREATE_PARTITIONS.versions,
        DESCRIBE_CONFIGS,
        ALTER_CONFIGS,
        INCREMENTAL_ALTER_CONFIGS,
        DESCRIBE_CLIENT_QUOTAS,
        ALTER_CLIENT_QUOTAS,
    )
}
APIS: Final = ApiTable([*_INTERCEPTED.values(), HEARTBEAT])
"""The intercepted APIs, for the relays of client listeners. Heartbeats of streams groups are intercepted only
while their client has a controller mutation quota.
"""


class AdminApis:
    """Answers the requests that the proxy intercepts."""

    api_keys: Final = frozenset(_INTERCEPTED)

    def __init__(
        self,
        *,
        client_quotas: ClientQuotas,
        describing: DescribeConfigs,
        altering: AlterConfigs,
        creations: TopicCreations,
        mutations: ControllerMutations,
        authority: Authority,
        protected: ProtectedTopics,
    ) -> None:
        self.authority: Final = authority
        self.protected: Final = protected
        self._gate: Final = ProtectedTopicsGate(protected)
        self._mutations: Final = mutations
        self._client_quotas: Final = client_quotas
        self._describing: Final = describing
        self._altering: Final = altering
        self._creations: Final = creations

    async def answer(self, request: Intercepted, broker: Broker) -> Reply:
        """Answer a request.

        Raises ProtocolError if a broker would close the connection, RelayError if the broker's response to
        the proxy does not parse.
        """
        if request.header.api_key in GUARDED:
            return await self._gate.answer(request, broker, self._handle)
        return await self._handle(request, broker)

    async def _handle(self, request: Intercepted, broker: Broker) -> Reply:
        """Give a request to the handler of its API. Raises UnsupportedVersion and what the handler raises."""
        header = request.header
        if header.api_key == METADATA:
            return await self._mutations.auto_creations.answer(request, broker)
        if header.api_key == STREAMS_GROUP_HEARTBEAT:
            return await self._mutations.streams_topics.answer(request, broker)
        api = _INTERCEPTED[header.api_key]
        api.check_version(header.api_version)
        if api is CREATE_PARTITIONS.versions:
            return await answer_growth(request, broker, self._change)
        if api is DELETE_TOPICS.versions or api is DELETE_RECORDS.versions:
            return await self._change(request, broker)
        if api is CREATE_TOPICS.versions:
            return await self._creations.answer(request, broker)
        if api is DESCRIBE_CONFIGS:
            return await self._describing.answer(request, broker)
        if api is DESCRIBE_CLIENT_QUOTAS:
            return Reply(await self._client_quotas.describe(request, broker.rights))
        if api is ALTER_CLIENT_QUOTAS:
            return Reply(await self._client_quotas.alter(request, broker.rights))
        return Reply(await self._altering.answer(request, broker))

    async def _change(self, request: Intercepted, broker: Broker) -> Reply:
        """Forward a request as it is, or what of it the controller mutation quota admits."""
        if request.header.api_key != DELETE_RECORDS.versions.key and self._mutations.active:
            return await self._mutations.answer(request, broker)
        return Reply(frame([await broker.ask(frame([request.frame]))]))
