"""Traffic: the counters of a listener, plain integers that a scrape reads."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.usage import API_KEYS, REST, UsageLedger
from proxy.relay.counters.count import Count
from proxy.relay.counters.latencies import Latencies
from proxy.wire.cursor import NO_ID
from proxy.wire.error_codes import UNKNOWN_SERVER_ERROR
from proxy.wire.long_names import MAX_TOPIC_NAME
from proxy.wire.views import Item

MAX_CLIENTS: Final = 10_000
"""(user, client id) pairs that are counted individually. If there are more, the smallest without a connection
are added to the rest, so that a client that invents client ids does not hide others. Pairs with a connection
are always counted individually: there are no more of them than connections.
"""
_ROOM: Final = MAX_CLIENTS // 8
"""The number of clients that are added to the rest at once, because finding the smallest sorts all."""
MAX_FAILED_LOGINS: Final = 1000
"""The same limit for (mechanism, address)."""
UNIT_US: Final = 1000
"""The unit of times on the event loop's clock, which has milliseconds. The longest bound is 32 s."""
PROXY_UNIT_US: Final = 50
"""The unit of times in the proxy. The longest bound is 1.6 s."""
MAX_ERROR_CODE: Final = 999
"""Kafka's error codes are far below; a faulty broker must not fill the memory."""
MAX_PARTITIONS: Final = 100_000
"""If there are more partitions, the others are counted as one."""


@final
class Bytes:
    """Bytes towards the broker (in) and towards the client (out), of whole frames."""

    __slots__ = ("bytes_in", "bytes_out", "connections")

    def __init__(self) -> None:
        self.bytes_in: native = 0
        self.bytes_out: native = 0
        self.connections: native = 0
        """The number of connections that count here at present."""


@final
class Traffic:
    """The counters of one listener; its connections share them."""

    def __init__(self, topic_partitions: bool = False, usage: UsageLedger | None = None) -> None:
        self.topic_partitions: Final = topic_partitions
        """Whether to count bytes by topic and partition."""
        self.usage: Final = usage
        """The usage of each client in an interval; None if no usage events are configured."""
        self.want_items: Final = topic_partitions or usage is not None
        """Whether any of this counts by partition."""
        self._requests: Final = [Count() for _ in range(API_KEYS)]
        self.unread_fetches = 0
        """Fetches between brokers whose version the proxy cannot read; they are forwarded without quotas."""
        self.proxy_times: Final = Latencies(PROXY_UNIT_US)
        """How long a request and its response were in the proxy, for some of the requests."""
        self.broker_times: Final = Latencies(UNIT_US)
        """How long brokers took to respond."""
        self.throttle_times: Final = Latencies(UNIT_US)
        """How long quotas made clients wait, for each request that they throttled."""
        self.total: Final = Bytes()
        self.clients: Final[dict[tuple[str, str], Bytes]] = {}
        """By (user, client id); (REST, REST) has all others. A sum over all only ever grows."""
        self._without_room = 0
        """The number of further clients that are counted before the smallest are looked for again, because
        the last search found too few without a connection.
        """
        self.partitions: Final[dict[tuple[str, bytes, int], Bytes]] = {}
        """By (topic, topic id, partition), where one of the first two is empty; bytes of record batches."""

        self.failed_logins: Final[dict[tuple[str, str], int]] = {}
        """By (SASL mechanism, IP address)."""
        self.broker_errors: Final[dict[tuple[int, int, int], int]] = {}
        """By (node id, API key, error code): error codes in brokers' responses."""

    @property
    def requests(self) -> list[int]:
        """By API key; the last item is for all unknown keys."""
        return [count.value for count in self._requests]

    def count_request(self, api_key: native) -> None:
        key = api_key
        if key >= API_KEYS:
            key = API_KEYS - 1
        self._requests[key].value += 1

    def client(self, user: str, client_id: str) -> Bytes:
        """Return the counters for a connection of a client. Call release() when the connection ends."""
        key = (user, client_id)
        counters = self.clients.get(key)
        if counters is None:
            if len(self.clients) >= MAX_CLIENTS:
                self._make_room()
            counters = self.clients.setdefault(key, Bytes())
        counters.connections += 1
        return counters

    def release(self, counters: Bytes) -> None:
        """Note that a connection has ended."""
        counters.connections -= 1

    def _make_room(self) -> None:
        """Add the smallest clients without a connection to the rest."""
        if self._without_room > 0:
            self._without_room -= 1
            return
        rest = self.clients.setdefault((REST, REST), Bytes())
        sizes = [
            counters.bytes_in + counters.bytes_out
            for counters in self.clients.values()
            if counters.connections <= 0 and counters is not rest
        ]
        sizes.sort()  # numbers alone: to sort pairs takes ten milliseconds
        room = min(len(sizes), _ROOM)
        largest = sizes[room - 1] if room > 0 else -1
        smallest: list[tuple[str, str]] = []
        for key, counters in self.clients.items():
            if len(smallest) == room:
                break
            unused = counters.connections <= 0 and counters is not rest
            if unused and counters.bytes_in + counters.bytes_out <= largest:
                smallest.append(key)
        for key in smallest:
            counters = self.clients.pop(key)
            rest.bytes_in += counters.bytes_in
            rest.bytes_out += counters.bytes_out
        self._without_room = _ROOM - len(smallest)

    def count_failed_login(self, mechanism: str, address: str) -> None:
        key = (mechanism, address)
        if key not in self.failed_logins and len(self.failed_logins) >= MAX_FAILED_LOGINS:
            key = (mechanism, REST)
        self.failed_logins[key] = self.failed_logins.get(key, 0) + 1

    def count_broker_error(self, node_id: int, api_key: int, error_code: int, times: int = 1) -> None:
        if not -1 <= error_code <= MAX_ERROR_CODE:
            error_code = UNKNOWN_SERVER_ERROR
        key = (node_id, api_key, error_code)
        self.broker_errors[key] = self.broker_errors.get(key, 0) + times

    def count_in(self, items: list[Item]) -> None:
        if not self.topic_partitions:
            return
        for item in items:
            self._partition(item).bytes_in += item.size

    def count_out(self, items: list[Item]) -> None:
        if not self.topic_partitions:
            return
        for item in items:
            self._partition(item).bytes_out += item.size

    def _partition(self, item: Item) -> Bytes:
        key = (item.topic, NO_ID if item.topic else item.topic_id, item.partition)
        counters = self.partitions.get(key)
        if counters is None:
            if len(self.partitions) >= MAX_PARTITIONS or len(item.topic) > MAX_TOPIC_NAME:
                key = (REST, NO_ID, -1)
            counters = self.partitions.setdefault(key, Bytes())
        return counters
