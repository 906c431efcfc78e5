"""What a handler of intercepted requests is given, and what it returns."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proxy.admin.authority import Ask, Rights
from proxy.quota.verdict import ALLOW, Verdict
from proxy.upstream.partition_counts import PartitionCounts


async def _none_before() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker to which a client has sent its request."""

    cluster_id: str
    node_id: int
    counts: PartitionCounts
    """Asks the cluster's brokers for partitions, on the proxy's own connections."""
    ask: Ask
    """Sends the broker a request on the client's connection."""
    rights: Rights
    """What the client may do."""
    gone: Callable[[], bool] = lambda: False
    """Whether the client has closed its connection. It is not read from meanwhile."""
    earlier_done: Callable[[], Awaitable[None]] = _none_before
    """Waits until the broker has responded to the earlier requests of the connection. It works on one at a
    time, and a Fetch waits for as long as its client likes: topics that the proxy has looked at may change.
    """


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to an intercepted request; the fields are the arguments of Relay.answer(), or of
    Relay.forward().
    """

    frame: bytes
    """The response with its length, or the request to forward (see `forwards`)."""
    throttle: Verdict = ALLOW
    delay_seconds: float = 0.0
    """For how long the response is delayed: its version has no throttle_time_ms."""
    forwards: bool = False
    """Whether `frame` is a request of the same version, and the broker's response to it is forwarded."""
    taken: Callable[[], None] | None = None
    """Called when the client's socket has taken the response, or the connection is over."""
