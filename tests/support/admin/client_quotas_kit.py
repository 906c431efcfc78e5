"""AlterClientQuotas and DescribeClientQuotas over a store in memory."""

import time
from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import Rights
from proxy.admin.client_quotas import ClientQuotas
from proxy.quota.limits.resources import LONG
from proxy.quota.quota import DOUBLE, INT, QuotaKey
from proxy.store.quota_store import QuotaStore
from proxy.wire.api_keys import ALTER_CLIENT_QUOTAS
from tests.support.admin.rights import FixedRights
from tests.support.messages.client_quotas import alter_request, describe_request
from tests.support.messages.kio_messages import read_frame, request_frame, response_type
from tests.support.messages.mutations import intercepted
from tests.support.quotas.memory_store import MemoryLog, Wall, memory_store

KEYS: Final = [
    QuotaKey("producer_byte_rate", LONG),
    QuotaKey("consumer_byte_rate", LONG),
    QuotaKey("request_percentage", DOUBLE),
    QuotaKey("connection_creation_rate", INT, for_ip=True),
]
ADMIN: Final = "admin"
RATE: Final = "producer_byte_rate"

Parts = Sequence[tuple[str, str | None]]
Ops = Sequence[tuple[str, float | None]]


class ClientQuotasKit:
    """Both APIs on a store in memory. kio decodes the responses."""

    def __init__(self, version: int = 1) -> None:
        self.wall = Wall(time.time_ns() // 1_000_000)
        self.store: QuotaStore
        self.log: MemoryLog
        self.store, self.log = memory_store({}, wall=self.wall)
        self.version = version
        self.rights: Rights = FixedRights()
        self._apis: Final = ClientQuotas(self.store, KEYS)

    async def send(self, request: Any) -> Any:
        received = intercepted(request_frame(request), ADMIN)
        handle = self._apis.alter if request.__api_key__ == ALTER_CLIENT_QUOTAS else self._apis.describe
        frame = await handle(received, self.rights)
        return read_frame(response_type(request.__api_key__, self.version), frame)

    async def alter(self, *entries: tuple[Parts, Ops], validate_only: bool = False) -> list[Any]:
        """Send an AlterClientQuotas request; return the results in the order of the entries."""
        request = alter_request(*entries, validate_only=validate_only, version=self.version)
        return list((await self.send(request)).entries)

    async def describe(self, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
        return await self.send(describe_request(*components, strict=strict, version=self.version))

    async def described(self, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
        """Return {entity: {key: value}}; entities are tuples of (type, name)."""
        response = await self.describe(*components, strict=strict)
        assert response.error_code == ErrorCode.none
        return {
            tuple((part.entity_type, part.entity_name) for part in entry.entity): {
                value.key: value.value for value in entry.values
            }
            for entry in response.entries
        }
