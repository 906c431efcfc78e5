"""Exchange: one request and its place in the order of responses, which is the order of requests."""

from typing import Final, final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.quota.client_ids import represented
from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.usage import ClientUsage
from proxy.relay.budgets.list_turns import ListTurn
from proxy.relay.counters.traffic import Bytes, Traffic
from proxy.wire.apis.api import Api
from proxy.wire.apis.rejected_partitions import Rejection
from proxy.wire.reader import text
from proxy.wire.views import RequestView


@final
class Client(Identity):
    """A client: an identity that sends requests on a connection, with one client id, and its counters."""

    __slots__ = ("raw_client_id", "traffic")

    def __init__(
        self,
        principal: str,
        client_id: str,
        address: str,
        traffic: Bytes,
        raw_client_id: bytes,
        usage: ClientUsage | None = None,
    ) -> None:
        super().__init__(principal, client_id, address, usage)
        self.traffic: Final = traffic
        self.raw_client_id: Final = raw_client_id
        """The client id as the requests have it. It is decoded only when it changes."""


def new_client(who: Identity, raw_client_id: bytes, traffic: Traffic, node_id: int) -> Client:
    """Return a client for `who` with a client id. Its usage is counted under the broker's `node_id`."""
    name, client_id = who.principal, represented(text(raw_client_id))
    usage = None if traffic.usage is None else traffic.usage.client(node_id, name, client_id)
    return Client(name, client_id, who.address, traffic.client(name, client_id), raw_client_id, usage)


@final
@mypyc_attr(free_list_len=1)
class Exchange:
    """A request that awaits its response."""

    __slots__ = (
        "api",
        "api_key",
        "client",
        "correlation_id",
        "counted",
        "delayed_until",
        "full_fetch",
        "grant",
        "list_turn",
        "local",
        "local_response",
        "next",
        "rejection",
        "request",
        "sent_at",
        "silent",
        "streams",
        "throttled_seconds",
        "throttled_until",
        "withheld",
    )

    def __init__(
        self,
        correlation_id: native,
        client: Client,
        *,
        api_key: native = -1,
        api: Api | None = None,
        request: RequestView | None = None,
        local: bool = False,
    ) -> None:
        self.next: Exchange | None = None
        """The next request of the client."""
        self.correlation_id: Final = correlation_id
        self.client: Final = client
        self.api: Final = api
        """None if the proxy does not read the API. The relay then forwards the response unchanged."""
        self.request: Final = request
        """None if no quota needs the request. Without an `api`, only its header has been read."""
        self.local = local
        """Whether the proxy answers the request itself, and has not decided to forward it."""
        self.api_key: Final = api_key
        self.rejection: Rejection | None = None
        """For Produce: the rejected partitions, to be added to the broker's response."""
        self.local_response: bytes | None = None
        """The proxy's own response, a whole frame, until its turn."""
        self.streams = False
        """Whether the relay may forward the response while it arrives, even if the response is small enough
        to be read whole.
        """
        self.delayed_until = 0.0
        """The earliest time at which the local response may leave, even if its turn is earlier."""
        self.throttled_until = 0.0
        """The time until which the request mutes its client."""
        self.throttled_seconds = 0.0
        """For how long the quotas make the client wait because of the request, until this has been
        counted.
        """
        self.grant: FetchGrant | None = None
        """For a consumer's fetch: the bytes that its quotas allow; None if no quota limits it."""
        self.list_turn: ListTurn | None = None
        """For a list: its turn, which the response ends."""
        self.full_fetch = True
        """For a consumer's fetch: whether it names all its partitions."""
        self.withheld = False
        """For a consumer's fetch: whether the client gets an empty response instead of the broker's."""
        self.silent = False
        """For Produce: whether the client expects no response, and the proxy drops the broker's."""
        self.counted = False
        """For Produce: whether its records have been counted because the connection has ended."""
        self.sent_at = 0.0
        """When the relay had sent the whole request to the broker."""

    def throttle(self, until: float, now: float) -> None:
        """Note that the request mutes its client; overlapping waits count once."""
        since = max(self.throttled_until, now)
        if until > since:
            self.throttled_seconds += until - since
            self.throttled_until = until


def local_exchange(correlation_id: native, client: Client, api_key: native, response: bytes) -> Exchange:
    """Create the exchange of a request that already has a response of the proxy."""
    exchange = Exchange(correlation_id, client, api_key=api_key, local=True)
    exchange.local_response = response
    return exchange
