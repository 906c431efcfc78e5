"""Exchange: one request and its place in the order of answers; a broker answers a connection's requests in
order.
"""

from typing import Final, final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.quota.identity import Identity
from proxy.quota.usage import ClientUsage
from proxy.relay.traffic import Bytes, Traffic
from proxy.wire.apis import Api
from proxy.wire.reader import text
from proxy.wire.rejected_partitions import Rejection
from proxy.wire.views import RequestView


@final
class Client(Identity):
    """Who sends on a connection under one client id, and its counters."""

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
        """The client id as it stands in the requests, so that it is decoded only when it changes."""


def new_client(who: Identity, raw_client_id: bytes, traffic: Traffic, node_id: int) -> Client:
    """`who` under a client id; `node_id` is the broker's, under which usage is counted."""
    name, client_id = who.principal, text(raw_client_id)
    usage = None if traffic.usage is None else traffic.usage.client(node_id, name, client_id)
    return Client(name, client_id, who.address, traffic.client(name, client_id), raw_client_id, usage)


@final
@mypyc_attr(free_list_len=1)
class Exchange:
    """A request that awaits its answer."""

    __slots__ = (
        "answer",
        "api",
        "api_key",
        "client",
        "correlation_id",
        "held_until",
        "next",
        "own",
        "rejection",
        "request",
        "sent_at",
        "streams",
        "throttled_until",
    )

    def __init__(
        self,
        correlation_id: native,
        client: Client,
        api: Api | None = None,
        request: RequestView | None = None,
        own: bool = False,
        api_key: native = -1,
    ) -> None:
        self.next: Exchange | None = None
        """The request that the client sent after this one."""
        self.correlation_id: Final = correlation_id
        self.client: Final = client
        self.api: Final = api
        """None where the proxy does not read the API: the answer passes as it is."""
        self.request: Final = request
        """None where nobody has to know of the request; without an `api`, only its header has been read."""
        self.own: Final = own
        """Whether the proxy answers, and no broker hears of it."""
        self.api_key: Final = api_key
        self.rejection: Rejection | None = None
        """Produce: partitions that did not go on, to be put into the broker's answer."""
        self.answer: bytes | None = None
        """The proxy's own answer, a whole frame: it waits here for its turn."""
        self.streams = False
        """Whether its answer may pass on while it comes even where it is short enough to be taken whole."""
        self.held_until = 0.0
        """The proxy's own answer does not leave before this, even in its turn."""
        self.throttled_until = 0.0
        """Until when the request makes its client wait."""
        self.sent_at = 0.0
        """When the whole request had been handed on to the broker."""
