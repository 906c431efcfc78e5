"""Authority: decides who may read and change quotas through the proxy: clients that the cluster authorizes.

The proxy sends the broker a request of the same kind that changes nothing, on the client's own connection: a
broker rejects AlterClientQuotas with validate_only for the same clients as without (error 31).
DescribeCluster's authorized operations do not suffice: they are empty for a client that may not describe the
cluster, whatever else it may do. The configuration decides in two cases: for a client whose TLS ends at the
proxy, since the broker sees the proxy's principal, and in a cluster without an authorizer, which lets every
client do everything.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from proxy.quota.identity import Identity
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.security.loopback import is_loopback
from proxy.security.settings import Changes
from proxy.upstream.broker_connection import request_frame
from proxy.upstream.responses import read_response

Response = TypeVar("Response", bound=ResponsePayload)
Ask = Callable[[bytes], Awaitable[bytes]]
"""Sends the broker a frame on the client's own connection, and returns header and body of the response."""
EVERYBODY: Final = "everybody"
LOOPBACK: Final = "loopback"
MAY_NOT: Final = (
    "Neither the cluster nor the proxy's configuration authorizes this client to read or change quotas: it "
    "needs DescribeConfigs or AlterConfigs on the cluster, or, where the cluster cannot decide, an entry in "
    "the proxy's quotas.changes.admins."
)


class Authority:
    """The rights that the configuration gives."""

    def __init__(self, settings: Changes) -> None:
        self.settings = settings

    def without_authorizer(self, who: Identity, *, address_stated: bool) -> bool:
        """Whether a client may read and change quotas in a cluster without an authorizer. `address_stated`:
        whether a PROXY header states its address, which does not show that the client is on this host.
        """
        if who.principal in self.settings.admins:
            return True
        open_to = self.settings.without_authorizer or LOOPBACK
        on_this_host = is_loopback(who.address) and not address_stated
        return open_to == EVERYBODY or (open_to == LOOPBACK and on_this_host)

    def named(self, who: Identity) -> bool:
        """Whether the configuration names a client as an admin."""
        return who.principal in self.settings.admins


class Rights(Protocol):
    """What the client of one request may do. Raises RelayError if a response of the broker does not parse."""

    @property
    def sees_configs(self) -> bool:
        """Whether it may see the quota configs of a resource whose Kafka configs the broker shows it."""

    async def may_describe(self) -> bool:
        """Whether it may read the cluster's quotas: DescribeConfigs on the cluster."""

    async def may_alter(self) -> bool:
        """Whether it may change the cluster's quotas: AlterConfigs on the cluster."""

    async def may_as_judged(self) -> bool:
        """Whether it may change the quota configs of a resource if the broker lets it alter the resource."""


class ClientRights(Rights):
    """The rights that the broker gives; those of the configuration if the broker cannot decide.

    Has the method of proxy.security.access.Asker, so that probes can send requests through it.
    """

    def __init__(
        self,
        authority: Authority,
        ask: Ask,
        who: Identity,
        correlation_id: int,
        *,
        known_to_broker: bool,
        address_stated: bool = False,
    ) -> None:
        """`known_to_broker`: whether the broker sees the client's own principal. `address_stated`: see
        Authority.without_authorizer().
        """
        self._authority: Final = authority
        self._ask_broker: Final = ask
        self._who: Final = who
        self._correlation_id: Final = correlation_id
        self._known_to_broker: Final = known_to_broker
        self._address_stated: Final = address_stated

    @property
    def sees_configs(self) -> bool:
        return self._known_to_broker or self._authority.named(self._who)

    async def may_describe(self) -> bool:
        decided = await self._decided()
        if decided is not None:
            return decided
        from proxy.admin import probes

        return await probes.lets_describe_quotas(self)

    async def may_alter(self) -> bool:
        decided = await self._decided()
        if decided is not None:
            return decided
        from proxy.admin import probes

        return await probes.lets_alter_quotas(self)

    async def may_as_judged(self) -> bool:
        decided = await self._decided()
        return decided is None or decided

    async def _decided(self) -> bool | None:
        """Return what the configuration decides; None if the broker decides."""
        if not self._known_to_broker:
            return self._authority.named(self._who)
        from proxy.admin import probes  # AuthorizerWatch has imported it already, if it runs.

        if await probes.has_no_authorizer(self):
            return self._authority.without_authorizer(self._who, address_stated=self._address_stated)
        return None

    async def ask(self, request: RequestPayload, schema: type[Response]) -> Response:
        """Send the broker a request on the client's own connection; return the response.

        Raises RelayError if the response does not parse, and what the argument `ask` of __init__() raises.
        """
        payload = await self._ask_broker(request_frame(request, self._correlation_id, self._who.client_id))
        try:
            _, response = read_response(schema, payload)
        except ValueError as error:
            what = f"{schema.__name__} v{schema.__version__} does not parse: {error}"
            raise RelayError(BROKER_PROTOCOL_ERROR, what) from error
        return response
