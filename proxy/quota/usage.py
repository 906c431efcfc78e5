"""Usage: what each client has used since somebody took it last, by API, topic and partition.

What is taken adds up to what Traffic counts of the same clients. A frame's bytes are divided so:

    to each partition     the record bytes that the message carries for it
    to no partition       all the rest of the frame, and with it the request itself and its waits

so nothing counts twice, and a request of many partitions is one. A frame that is too large to be held counts
by partition as it passes, and its rest at its end.

There is one UsageLedger for a listener. Whoever counts asks it for a ClientUsage once per connection and
client id, and keeps it.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.views import NO_ID, Item

MAX_CLIENTS: Final = 10_000
"""Beyond so many clients in one interval, and so many tallies, the rest is counted as one."""
MAX_TALLIES: Final = 100_000
API_KEYS: Final = 256
"""Kafka's highest key is below 100; what a client sends above this is counted as the last."""
MAX_TOPIC_NAME: Final = 249
"""Kafka's own bound; what a client makes up beyond it is rest as well."""
MAX_CLIENT_NAME: Final = 1024
"""Kafka has no bound; who has a longer user name or client id is rest as well."""
REST: Final = "<rest>"
"""The name under which that rest is counted; no Kafka topic can be called so."""
NO_PARTITION: Final = -1


@final
class Tally:
    """One client's use of one API, of one partition or none. Bytes towards the broker are in."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "quotas",
        "rejected_bytes",
        "rejected_requests",
        "requests",
        "throttle_seconds",
        "throttled_requests",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.throttled_requests = 0
        self.throttle_seconds = 0.0
        self.rejected_requests = 0
        self.rejected_bytes = 0
        self.quotas: dict[str, float] | None = None
        """By quota, the seconds that it made requests wait; one that rejects has at least an entry."""

    def add(self, other: "Tally") -> None:
        """Count what another has counted."""
        self.requests += other.requests
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.throttled_requests += other.throttled_requests
        self.throttle_seconds += other.throttle_seconds
        self.rejected_requests += other.rejected_requests
        self.rejected_bytes += other.rejected_bytes
        if other.quotas is not None:
            for quota, seconds in other.quotas.items():
                self.bind(quota, seconds)

    def bind(self, quota: str, seconds: float) -> None:
        """A quota has held a request back, for so long or for good (0.0)."""
        quotas = self.quotas
        if quotas is None:
            self.quotas = {quota: seconds}
        else:
            quotas[quota] = quotas.get(quota, 0.0) + seconds

    @property
    def quota(self) -> str:
        """The quota that bound it most; empty where none did."""
        most = ""
        longest = -1.0
        if self.quotas is not None:
            for quota, seconds in self.quotas.items():
                if seconds > longest:
                    most = quota
                    longest = seconds
        return most


_NO_API: Final = -1 << 16
"""Below every API key, which have 16 bits on the wire."""
_NO_TALLY: Final = Tally()


@final
class Usage:
    """A tally and what it is about."""

    __slots__ = ("api_key", "client_id", "node_id", "partition", "tally", "topic", "topic_id", "user")

    def __init__(
        self,
        *,
        node_id: int,
        user: str,
        client_id: str,
        api_key: int,
        topic: str,
        topic_id: bytes,
        partition: int,
        tally: Tally,
    ) -> None:
        self.node_id: Final = node_id
        self.user: Final = user
        self.client_id: Final = client_id
        self.api_key: Final = api_key
        self.topic: Final = topic
        """Empty where the topic has only an id, and where it is about no partition."""
        self.topic_id: Final = topic_id
        """NO_ID where the topic has a name, and where it is about no partition."""
        self.partition: Final = partition
        """NO_PARTITION where it is about none, or about what has no tally of its own."""
        self.tally: Final = tally


@final
class ClientUsage:
    """One client's use of one broker. `user` and `client_id` are REST for those who have no own."""

    def __init__(self, ledger: "UsageLedger", node_id: int, user: str, client_id: str) -> None:
        self._last_api: native = _NO_API
        """Clients mostly use one API again and again: its tally is found without a look-up."""
        self._last_tally = _NO_TALLY
        self.node_id: Final = node_id
        self.user: Final = user
        self.client_id: Final = client_id
        self._ledger: Final = ledger
        self._apis: dict[int, Tally] = {}
        self._partitions: dict[tuple[int, str, bytes, int], Tally] = {}

    def count_request(self, api_key: native, size: int) -> None:
        """A request has been read, or its head: a frame of so many bytes."""
        tally = self._api(api_key)
        tally.requests += 1
        tally.bytes_in += size

    def count_in(self, api_key: native, size: int) -> None:
        """So many bytes are from the client; below zero, they count later."""
        self._api(api_key).bytes_in += size

    def count_out(self, api_key: native, size: int) -> None:
        """So many bytes are for the client; below zero, they count later."""
        self._api(api_key).bytes_out += size

    def records_in(self, api_key: native, items: list[Item]) -> int:
        """Of bytes from the client that are not counted yet, these are partitions' records: how many."""
        size = 0
        for item in items:
            if item.size > 0:
                self._partition(api_key, item).bytes_in += item.size
                size += item.size
        return size

    def records_out(self, api_key: native, items: list[Item]) -> int:
        """Of bytes for the client that are not counted yet, these are partitions' records: how many."""
        size = 0
        for item in items:
            # A fetch of many partitions mostly brings records of few.
            if item.size > 0:
                self._partition(api_key, item).bytes_out += item.size
                size += item.size
        return size

    def divide_in(self, api_key: native, items: list[Item]) -> None:
        """Of bytes from the client that have just been counted, these are partitions' records."""
        size = self.records_in(api_key, items)
        if size > 0:
            self._api(api_key).bytes_in -= size

    def divide_out(self, api_key: native, items: list[Item]) -> None:
        """Of bytes for the client that have just been counted, these are partitions' records."""
        size = self.records_out(api_key, items)
        if size > 0:
            self._api(api_key).bytes_out -= size

    def count_throttle(self, api_key: native, quota: str, seconds: float, requests: int) -> None:
        """A quota makes a request wait (1), or one that was counted before wait for longer (0)."""
        tally = self._api(api_key)
        tally.throttled_requests += requests
        tally.throttle_seconds += seconds
        tally.bind(quota, seconds)

    def count_rejected(self, api_key: int, quota: str, item: Item, requests: int) -> None:
        """A quota rejects what a request has for a partition; the request itself counts once (1, then 0)."""
        tally = self._partition(api_key, item)
        tally.rejected_requests += requests
        tally.rejected_bytes += item.size
        tally.bind(quota, 0.0)

    def _api(self, api_key: native) -> Tally:
        if api_key != self._last_api:
            self._last_tally = self._find_api(min(api_key, API_KEYS - 1))
            self._last_api = api_key
        return self._last_tally

    def _find_api(self, api_key: int) -> Tally:
        tally = self._apis.get(api_key)
        if tally is None:
            if not self._apis and not self._partitions:
                self._ledger.enlist(self)
            self._ledger.tallies += 1
            tally = Tally()
            self._apis[api_key] = tally
        return tally

    def _partition(self, api_key: int, item: Item) -> Tally:
        key = (api_key, item.topic, NO_ID if item.topic else item.topic_id, item.partition)
        tally = self._partitions.get(key)
        if tally is None:
            if self._ledger.full or len(item.topic) > MAX_TOPIC_NAME:
                self._ledger.left_out += 1
                key = (api_key, REST, NO_ID, NO_PARTITION)
                tally = self._partitions.get(key)
            if tally is None:
                if not self._apis and not self._partitions:
                    self._ledger.enlist(self)
                self._ledger.tallies += 1
                tally = Tally()
                self._partitions[key] = tally
        return tally

    def take(self) -> list[Usage]:
        """All that was counted; from now on counting starts anew."""
        apis, self._apis = self._apis, {}
        partitions, self._partitions = self._partitions, {}
        self._last_api = _NO_API
        self._last_tally = _NO_TALLY
        node_id, user, client_id = self.node_id, self.user, self.client_id
        taken = [
            Usage(
                node_id=node_id,
                user=user,
                client_id=client_id,
                api_key=api_key,
                topic="",
                topic_id=NO_ID,
                partition=NO_PARTITION,
                tally=tally,
            )
            for api_key, tally in apis.items()
        ]
        for key, tally in partitions.items():
            taken.append(
                Usage(
                    node_id=node_id,
                    user=user,
                    client_id=client_id,
                    api_key=key[0],
                    topic=key[1],
                    topic_id=key[2],
                    partition=key[3],
                    tally=tally,
                )
            )
        return taken


@final
class UsageLedger:
    """The clients of one listener that have used anything since close_interval() was called last."""

    def __init__(self) -> None:
        self.tallies = 0
        """Made in this interval."""
        self.left_out = 0
        """Partitions in messages that were counted under REST since the start."""
        self._clients: dict[tuple[int, str, str], ClientUsage] = {}
        self._counted: list[ClientUsage] = []

    @property
    def full(self) -> bool:
        """Whether no further partition has a tally of its own in this interval."""
        return self.tallies >= MAX_TALLIES

    def client(self, node_id: int, user: str, client_id: str) -> ClientUsage:
        """Where to count a client's use of a broker; one for all the rest when there are too many."""
        key = (node_id, user, client_id)
        usage = self._clients.get(key)
        if usage is None:
            if (
                len(self._clients) >= MAX_CLIENTS
                or len(user) > MAX_CLIENT_NAME
                or len(client_id) > MAX_CLIENT_NAME
            ):
                key = (node_id, REST, REST)
                usage = self._clients.get(key)
            if usage is None:
                usage = ClientUsage(self, key[0], key[1], key[2])
                self._clients[key] = usage
        return usage

    def enlist(self, usage: ClientUsage) -> None:
        """A client has begun to use something in this interval."""
        self._counted.append(usage)

    def close_interval(self) -> list[ClientUsage]:
        """Everybody who has used anything: each to be asked with take().

        However many they are, this is quick. What is counted before take() counts in the old interval; two
        of them may be about the same client.
        """
        counted, self._counted = self._counted, []
        self._clients = {(usage.node_id, usage.user, usage.client_id): usage for usage in counted}
        self.tallies = 0
        return counted
