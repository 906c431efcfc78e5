"""Usage: the use of each client in an interval, by API, topic and partition.

The sums equal those of Traffic for the same clients, because the bytes of a frame are divided:

    each partition     the record bytes of the message for it
    no partition       the rest of the frame, the request itself, and its throttle time

Nothing counts twice, and a request with many partitions is one request. A frame that is too large to be
buffered counts by partition as it is forwarded, and its rest at its end.

Each listener has one UsageLedger. A connection gets a ClientUsage from it once per client id, and keeps it.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.cursor import NO_ID, NO_PARTITION
from proxy.wire.long_names import MAX_TOPIC_NAME
from proxy.wire.views import Item

MAX_CLIENTS: Final = 10_000
"""Clients with a count of their own in one interval. The others share one count, so that clients that invent
client ids or topics cannot exhaust the memory; MAX_TALLIES likewise bounds the partitions."""
MAX_TALLIES: Final = 100_000
API_KEYS: Final = 256
"""Kafka's highest key is below 100; what a client sends above this is counted as the last."""
MAX_CLIENT_NAME: Final = 1024
"""The maximum length of a user name or a client id. Kafka has none; longer names count under REST."""
REST: Final = "<rest>"
"""The name of everything without a count or a bucket of its own. No Kafka topic can have this name."""


@final
class Tally:
    """A client's use of one API, of one partition or of none. bytes_in are bytes for the broker."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "following",
        "partition",
        "quotas",
        "rejected_bytes",
        "rejected_requests",
        "requests",
        "throttle_seconds",
        "throttled_requests",
    )

    def __init__(self) -> None:
        self.requests: native = 0
        self.bytes_in: native = 0
        self.bytes_out: native = 0
        self.throttled_requests = 0
        self.throttle_seconds = 0.0
        self.rejected_requests = 0
        self.rejected_bytes = 0
        self.quotas: dict[str, float] | None = None
        """The seconds of throttling by quota key; a quota that only rejects has 0.0."""
        self.partition: native = NO_PARTITION
        self.following: Tally | None = None
        """The tally that was last looked up after this one: messages mostly have the same partitions in the
        same order, so it is probably looked up next.
        """

    def add(self, other: "Tally") -> None:
        """Add another tally."""
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
        """Count that a quota throttled a request for some seconds, or rejected it (0.0)."""
        quotas = self.quotas
        if quotas is None:
            self.quotas = {quota: seconds}
        else:
            quotas[quota] = quotas.get(quota, 0.0) + seconds

    @property
    def quota(self) -> str:
        """The quota that throttled the longest; empty if none did."""
        most = ""
        longest = -1.0
        if self.quotas is not None:
            for quota, seconds in self.quotas.items():
                if seconds > longest:
                    most = quota
                    longest = seconds
        return most


_NO_API: Final = -1 << 16
"""Below every API key: they are 16-bit integers in requests."""
_NO_TALLY: Final = Tally()


@final
class Usage:
    """A tally, and the client, API and partition that it counts."""

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
        """Empty if only the topic's id is known, or if it counts no partition."""
        self.topic_id: Final = topic_id
        """NO_ID if the topic's name is known, or if it counts no partition."""
        self.partition: Final = partition
        """NO_PARTITION if it counts no partition, or those without a tally of their own."""
        self.tally: Final = tally


@final
class ClientUsage:
    """One client's use of one broker. The clients without a count of their own share one, named REST."""

    def __init__(self, ledger: "UsageLedger", node_id: int, user: str, client_id: str) -> None:
        self._last_api: native = _NO_API
        """The tally of the last API, without a look-up: most clients use one API all the time."""
        self._last_tally = _NO_TALLY
        self.node_id: Final = node_id
        self.user: Final = user
        self.client_id: Final = client_id
        self._ledger: Final = ledger
        self._apis: dict[int, Tally] = {}
        self._topics: dict[tuple[int, str, bytes], dict[int, Tally]] = {}
        """The tallies by API, topic and topic id, and by partition."""
        self._topic_api: native = _NO_API
        """The API, topic and tallies of the last partition: most messages have many partitions of a topic."""
        self._topic = ""
        self._topic_id = NO_ID
        self._tallies: dict[int, Tally] = {}
        self._partition_tally: Tally | None = None
        """The tally of the last partition, if it is one of these."""

    def count_request(self, api_key: native, size: int) -> None:
        """Count a request, and the bytes of its frame."""
        tally = self._api(api_key)
        tally.requests += 1
        tally.bytes_in += size

    def count_in(self, api_key: native, size: int) -> None:
        """Count bytes from the client. A negative size takes back bytes that will be counted by partition."""
        self._api(api_key).bytes_in += size

    def count_out(self, api_key: native, size: int) -> None:
        """Count bytes for the client. A negative size takes back bytes that will be counted by partition."""
        self._api(api_key).bytes_out += size

    def records_in(self, api_key: native, items: list[Item]) -> native:
        """Count the records of partitions from the client; return their bytes."""
        return self._count_records(api_key, items, False)

    def records_out(self, api_key: native, items: list[Item]) -> native:
        """Count the records of partitions for the client; return their bytes."""
        return self._count_records(api_key, items, True)

    def _count_records(self, api_key: native, items: list[Item], out: bool) -> native:
        size: native = 0
        last: Tally | None = None
        topic = ""
        topic_id = NO_ID
        for item in items:
            # Most fetches of many partitions return records of few.
            added: native = item.size
            if added <= 0:
                continue
            tally = None if last is None else last.following
            if (
                tally is not None
                and tally.partition == item.partition
                and item.topic is topic
                and item.topic_id is topic_id
            ):  # nearly always: the same partitions in the same order
                last = tally
            else:
                if last is not None:
                    self._partition_tally = last
                tally = self._partition(api_key, item)
                last = self._partition_tally
                topic = item.topic
                topic_id = item.topic_id
            if out:
                tally.bytes_out += added
            else:
                tally.bytes_in += added
            size += added
        if last is not None:
            self._partition_tally = last
        return size

    def divide_in(self, api_key: native, items: list[Item]) -> None:
        """Assign records to their partitions; their bytes from the client have just been counted without a
        partition.
        """
        size = self.records_in(api_key, items)
        if size > 0:
            self._api(api_key).bytes_in -= size

    def divide_out(self, api_key: native, items: list[Item]) -> None:
        """Assign records to their partitions; their bytes for the client have just been counted without a
        partition.
        """
        size = self.records_out(api_key, items)
        if size > 0:
            self._api(api_key).bytes_out -= size

    def count_throttle(self, api_key: native, quota: str, seconds: float, requests: int) -> None:
        """Count that a quota makes a request wait for `seconds`. `requests`: 1, or 0 for a request that has
        been counted before and waits for longer.
        """
        tally = self._api(api_key)
        tally.throttled_requests += requests
        tally.throttle_seconds += seconds
        tally.bind(quota, seconds)

    def count_rejected(self, api_key: int, quota: str, item: Item, requests: int) -> None:
        """Count that a quota rejects an item of a request. `requests`: 1 for the first item of the request,
        then 0, so that it counts once.
        """
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
            tally = self._new_tally()
            self._apis[api_key] = tally
        return tally

    def _new_tally(self) -> Tally:
        if not self._apis and not self._topics:
            self._ledger.enlist(self)
        self._ledger.tallies += 1
        return Tally()

    def _partition(self, api_key: native, item: Item) -> Tally:
        # A comparison of equal names costs more than one of objects, which are mostly the same.
        if (
            api_key != self._topic_api
            or (item.topic is not self._topic and item.topic != self._topic)
            or (item.topic_id is not self._topic_id and item.topic_id != self._topic_id)
        ):
            self._tallies = self._topics.get(_topic_key(api_key, item), {})
            self._topic_api = api_key
            self._topic = item.topic
            self._topic_id = item.topic_id
            self._partition_tally = None
        last = self._partition_tally
        if last is not None:
            following = last.following
            if following is not None and following.partition == item.partition:
                self._partition_tally = following
                return following
        tally = self._tallies.get(item.partition)
        if tally is None:
            return self._add(api_key, item)
        if last is not None:
            last.following = tally
        self._partition_tally = tally
        return tally

    def _add(self, api_key: int, item: Item) -> Tally:
        """Add a tally to those of the item's topic, or return that of all partitions without one."""
        # A name that is longer than any topic's counts under REST, too.
        if self._ledger.full or len(item.topic) > MAX_TOPIC_NAME:
            self._ledger.excluded += 1
            rest = self._topics.get((api_key, REST, NO_ID))
            if rest is None:
                rest = {NO_PARTITION: self._new_tally()}
                self._topics[api_key, REST, NO_ID] = rest
            return rest[NO_PARTITION]
        tally = self._new_tally()
        tally.partition = item.partition
        self._tallies[item.partition] = tally
        self._topics[_topic_key(api_key, item)] = self._tallies
        return tally

    def take(self) -> list[Usage]:
        """Return all counts, and start again from zero."""
        apis, self._apis = self._apis, {}
        topics, self._topics = self._topics, {}
        self._topic_api = _NO_API
        self._tallies = {}
        self._partition_tally = None
        self._last_api = _NO_API
        self._last_tally = _NO_TALLY
        taken = [self._usage(api_key, "", NO_ID, NO_PARTITION, tally) for api_key, tally in apis.items()]
        for (api_key, topic, topic_id), tallies in topics.items():
            for partition, tally in tallies.items():
                tally.following = None
                taken.append(self._usage(api_key, topic, topic_id, partition, tally))
        return taken

    def _usage(self, api_key: int, topic: str, topic_id: bytes, partition: int, tally: Tally) -> Usage:
        return Usage(
            node_id=self.node_id,
            user=self.user,
            client_id=self.client_id,
            api_key=api_key,
            topic=topic,
            topic_id=topic_id,
            partition=partition,
            tally=tally,
        )


def _topic_key(api_key: int, item: Item) -> tuple[int, str, bytes]:
    return (api_key, item.topic, NO_ID if item.topic else item.topic_id)


@final
class UsageLedger:
    """The clients of one listener, and which of them were active in the current interval."""

    def __init__(self) -> None:
        self.tallies = 0
        """Tallies made in this interval."""
        self.excluded = 0
        """How many partitions of messages were counted under REST, since the process started."""
        self._clients: dict[tuple[int, str, str], ClientUsage] = {}
        self._counted: list[ClientUsage] = []

    @property
    def full(self) -> bool:
        """Whether further partitions count under REST in this interval."""
        return self.tallies >= MAX_TALLIES

    def client(self, node_id: int, user: str, client_id: str) -> ClientUsage:
        """The counter of a client's use of a broker; the shared one if there are too many clients."""
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
        """Note a client's first use in this interval."""
        self._counted.append(usage)

    def close_interval(self) -> list[ClientUsage]:
        """Start a new interval; return the clients that were active, whose counts take() returns.

        It takes no counts itself, so that the caller can call take() in slices. What a client uses before its
        take() counts in the old interval. A client may be in the list twice.
        """
        counted, self._counted = self._counted, []
        self._clients = {(usage.node_id, usage.user, usage.client_id): usage for usage in counted}
        self.tallies = 0
        return counted
