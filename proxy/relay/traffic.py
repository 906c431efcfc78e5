"""Traffic: the counters of a listener, plain integers that a scrape reads."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.usage import API_KEYS, MAX_TOPIC_NAME, REST, UsageLedger
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item

MAX_CLIENTS: Final = 10_000
"""Beyond so many (user, client id) pairs, and so many partitions, the rest is counted as one."""
MAX_FAILED_LOGINS: Final = 1000
"""The same for (mechanism, address)."""
MAX_PARTITIONS: Final = 100_000


@final
class Count:
    """A number that is counted up; in a list by itself each step would make a new int."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: native = 0


@final
class Bytes:
    """Bytes towards the broker (in) and towards the client (out), frames as they are."""

    __slots__ = ("bytes_in", "bytes_out")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0


@final
class Traffic:
    """The counters of one listener; its connections share them."""

    def __init__(self, topic_partitions: bool = False, usage: UsageLedger | None = None) -> None:
        self.topic_partitions: Final = topic_partitions
        """Whether bytes are counted by topic and partition."""
        self.usage: Final = usage
        """What each client uses in an interval; None where nobody wants to know."""
        self.want_items: Final = topic_partitions or usage is not None
        """Whether any of this counts by partition."""
        self._requests: Final = [Count() for _ in range(API_KEYS)]
        self.unread_fetches = 0
        """Fetches between brokers whose version the proxy cannot read; they are forwarded without quotas."""
        self.total: Final = Bytes()
        self.clients: Final[dict[tuple[str, str], Bytes]] = {}
        """By (user, client id)."""
        self.partitions: Final[dict[tuple[str, bytes, int], Bytes]] = {}
        """By (topic, topic id, partition), where one of the first two is empty; bytes of record batches."""

        self.failed_logins: Final[dict[tuple[str, str], int]] = {}
        """By (SASL mechanism, IP address)."""

    @property
    def requests(self) -> list[int]:
        """By API key; the last is for all that are unknown."""
        return [count.value for count in self._requests]

    def count_request(self, api_key: native) -> None:
        self._requests[api_key if api_key < API_KEYS else API_KEYS - 1].value += 1

    def client(self, user: str, client_id: str) -> Bytes:
        """The counters of a client; one for all the rest when there are too many."""
        key = (user, client_id)
        counters = self.clients.get(key)
        if counters is None:
            if len(self.clients) >= MAX_CLIENTS:
                key = (REST, REST)
            counters = self.clients.setdefault(key, Bytes())
        return counters

    def count_failed_login(self, mechanism: str, address: str) -> None:
        key = (mechanism, address)
        if key not in self.failed_logins and len(self.failed_logins) >= MAX_FAILED_LOGINS:
            key = (mechanism, REST)
        self.failed_logins[key] = self.failed_logins.get(key, 0) + 1

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
