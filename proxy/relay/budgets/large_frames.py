"""LargeFrames: the memory that all connections share for large Produce requests.

While quotas reject partitions, a request must be complete before a partition can be cut out of it. Requests
over CUT_THROUGH_BYTES share this memory, as with Kafka's queued.max.request.bytes: a client may open
thousands of connections, and cease to send in the middle of each request. A request reserves its whole size
before more than its first part is read, or waits in line. It never reserves a part of its size, so requests
cannot wait for each other in a circle.
"""

from typing import Final, final

from proxy.quota.identity import ClientKey, Identity, client_key

LARGE_FRAMES_BYTES: Final = 256 << 20
"""The memory of a process. Two of the largest requests that Kafka accepts by default, 100 MiB, fit in it."""
RETRY_SECONDS: Final = 0.02
"""The first request in line asks again after this time, the second after twice this time, and so on."""
MAX_RETRY_SECONDS: Final = 5.0
"""The longest time until a request asks again."""
_SOON: Final = 250
"""With more requests before it, a request asks again after MAX_RETRY_SECONDS."""


@final
class LargeFrames:
    """Grants memory to clients in turn, and to the requests of a client in the order in which they ask.

    A client that has timed out and connects again is therefore no worse off than before, and one with many
    connections gets no more turns than others. All requests of a client have at most half of the memory, or
    one request has more, so that others need not wait until slow requests of this client have arrived.
    """

    def __init__(self, capacity: int = LARGE_FRAMES_BYTES) -> None:
        self._capacity: Final = capacity
        self.reserved = 0
        """Bytes that are reserved now."""
        self._of_client: Final[dict[ClientKey, int]] = {}
        """The bytes that each client has reserved."""
        self._line: Final[dict[ClientKey, dict[int, int]]] = {}
        """The clients in the order of their turns, each with the tickets and sizes of its requests."""
        self._last_ticket = 0

    @property
    def wanted(self) -> bool:
        """Whether a request waits."""
        return len(self._line) > 0

    def join(self, client: ClientKey, size: int) -> int:
        """Return a ticket at the end of the client's line, for a request of this size."""
        self._last_ticket += 1
        tickets = self._line.get(client)
        if tickets is None:
            tickets = self._line[client] = {}
        tickets[self._last_ticket] = size
        return self._last_ticket

    def leave(self, client: ClientKey, ticket: int) -> None:
        """Remove a ticket: its request has stopped waiting."""
        tickets = self._line.get(client)
        if tickets is not None:
            tickets.pop(ticket, None)
            if not tickets:
                del self._line[client]

    def reserve(self, client: ClientKey, ticket: int, size: int) -> bool:
        """Reserve memory for the first in line; returns whether it was its turn and there was enough.

        A request that is larger than all of the memory is granted when nothing else is reserved.
        """
        if client != self._next_client() or ticket != next(iter(self._line[client])):
            return False
        if self.reserved > 0 and self.reserved + size > self._capacity:
            return False
        self.leave(client, ticket)
        more = self._line.pop(client, None)
        if more is not None:
            self._line[client] = more
        self.reserved += size
        self._of_client[client] = self._of_client.get(client, 0) + size
        return True

    def _next_client(self) -> ClientKey | None:
        """The first client in line that may reserve more; None if no client may."""
        for client, tickets in self._line.items():
            reserved = self._of_client.get(client, 0)
            if reserved == 0 or reserved + next(iter(tickets.values())) <= self._capacity // 2:
                return client
        return None

    def give_back(self, client: ClientKey, size: int) -> None:
        """Give back what one request of a client has reserved."""
        self.reserved -= size
        left = self._of_client[client] - size
        if left > 0:
            self._of_client[client] = left
        else:
            del self._of_client[client]

    def retry_seconds(self, client: ClientKey, ticket: int) -> float:
        """When this request should ask again: the later, the more requests are before it, so that a long line
        costs little time.
        """
        own = 0
        for earlier in self._line[client]:
            if earlier == ticket or own > _SOON:
                break
            own += 1
        places = own + 1
        turns = own + 1
        for other, tickets in self._line.items():
            if places > _SOON:
                break
            if other == client:
                turns = own
            else:
                places += min(len(tickets), turns)
        return min(places * RETRY_SECONDS, MAX_RETRY_SECONDS)


@final
class LargeFrame:
    """The memory of one connection, for one frame at a time."""

    __slots__ = ("_client", "_frames", "_ticket", "size")

    def __init__(self, frames: LargeFrames) -> None:
        self._frames: Final = frames
        self._ticket = 0
        """The connection's place in line; 0 for none."""
        self._client: ClientKey = ("", "")
        """The client in whose line the connection waits."""
        self.size = 0
        """Bytes that the connection has reserved."""

    @property
    def wanted(self) -> bool:
        """Whether others wait for memory."""
        return self._frames.wanted

    @property
    def retry_seconds(self) -> float:
        """When to call reserve() again."""
        return RETRY_SECONDS if self._ticket == 0 else self._frames.retry_seconds(self._client, self._ticket)

    def reserve(self, size: int, who: Identity) -> bool:
        """Reserve memory for a client's frame. Return whether it is granted; it is not while the memory of
        the last frame has not been given back.
        """
        if self.size > 0:
            return False
        if self._ticket == 0:
            self._client = client_key(who)
            self._ticket = self._frames.join(self._client, size)
        if not self._frames.reserve(self._client, self._ticket, size):
            return False
        self._ticket = 0
        self.size = size
        return True

    def leave(self) -> None:
        """Stop waiting."""
        if self._ticket != 0:
            self._frames.leave(self._client, self._ticket)
            self._ticket = 0

    def give_back(self) -> None:
        """Give back what is reserved."""
        if self.size > 0:
            self._frames.give_back(self._client, self.size)
            self.size = 0
