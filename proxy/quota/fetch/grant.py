"""FetchGrant: what the quotas of consumers allow one fetch of a connection, and then the next.

1. begin() begins with a fetch. Quota.limit_fetch() adds the buckets that the response will be charged to.
2. ask() grants the fetch, or returns the seconds after which to ask again, because a bucket is in debt or has
   promised its tokens to other fetches. While other fetches of the connection await their responses,
   ask_beside() grants it only if there are tokens for all of them.
3. The response is charged, and settle() returns what was reserved. cancel() returns it if there will be no
   response.

Each fetch that is in flight has a grant of its own. Its grant then serves a later fetch of the connection,
which has its places in the queues and is expected to bring as many bytes.

Reservations are estimates: a fetch may bring more than any fetch before. So withholds() returns for each
response whether its buckets are so far in debt by then that the client gets an empty response, as from Kafka.

Invariants:
- `granted` is true from the ask() that grants a fetch to its settle() or cancel(). Only then are tickets
  granted, and begin() is not called.
- `size` is of the last response. Only settle() changes it.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.fetch.places import FetchPlaces
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.debt import PAID_SECONDS
from proxy.quota.measure.fetch_queue import RETURN_SECONDS, FetchQueue
from proxy.quota.measure.fetch_tokens import (
    FIRST_FETCH_SECONDS,
    GROWTH,
    LEAST_FETCH_SECONDS,
    enforced,
    first_fetch_bytes,
    most_bytes,
    tokens_left,
)
from proxy.wire.fetch.request import NO_BOUND

UNKNOWN_SIZE: Final = -1
"""The size of a connection's last response before there was any."""
DEBT_SECONDS: Final = 1.0
"""A response is delivered, and charged, if its buckets owe at most this many seconds of their limits."""
LEAST_ROOM_BYTES: Final = 1 << 20
"""A fetch may bring so many bytes even if its max_bytes is lower: a broker sends at least one batch, of up to
1 MiB by default.
"""
BESIDE_BYTES: Final = 64 << 10
"""The largest response that is expected for a fetch beside others. Small responses cost less CPU if they
arrive together. Large ones do not, and over TLS they cost more.
"""
LEAST_RETRY_SECONDS: Final = 0.005
"""The shortest time until the tokens are asked for again."""
MOST_RETRY_SECONDS: Final = 1.0
"""The longest time until then, because a limit may change meanwhile."""
FETCHES_PER_SECOND: Final = 1000.0
"""The waiting fetches of a bucket that ask again in a second, at most: if more wait, each asks less often."""


@final
class FetchGrant:
    """The grant of one fetch at a time."""

    __slots__ = (
        "_asked_at",
        "_placed",
        "_retry_at",
        "acquires",
        "granted",
        "longest",
        "max_bytes",
        "places",
        "size",
        "watched",
    )

    def __init__(self, size: int = UNKNOWN_SIZE) -> None:
        """`size`: that of the last response to another fetch of the connection."""
        self.places: Final = FetchPlaces()
        """The buckets of the fetch."""
        self.size = size
        """The size of the last response; the next one is expected to be as large."""
        self.granted = False
        """Whether the fetch has been granted and its response has not arrived."""
        self.acquires = False
        """Whether the broker locks the records of the response for this consumer (ShareFetch)."""
        self.max_bytes = NO_BOUND
        """The maximum size of the response in bytes."""
        self.watched = False
        """Whether to ask Quota.withholds() about the response, whatever its buckets."""
        self.longest: Bucket | None = None
        """The bucket with the longest wait, if the fetch had to wait."""
        self._asked_at = 0.0
        self._placed = False
        """Whether tickets may be in queues, or have reservations."""
        self._retry_at = 0.0

    def begin(self, acquires: bool) -> None:
        """Begin with the next fetch."""
        self.acquires = acquires
        self.max_bytes = NO_BOUND
        self.watched = False
        self.longest = None
        self._retry_at = 0.0
        self.places.begin()

    @property
    def any(self) -> bool:
        """Whether any quota applies."""
        return self.watched or self.places.any

    def bound(self, max_bytes: int) -> None:
        """Lower the maximum size of the response to this."""
        if self.max_bytes == NO_BOUND or max_bytes < self.max_bytes:
            self.max_bytes = max_bytes

    # Before the fetch is forwarded

    def ask(self, now: float) -> float:
        """Grant the fetch and return 0.0, or return the seconds after which to ask again. Until then the
        fetch keeps its places.
        """
        self._asked_at = now
        if self._grant_if_ample(0.0, now):
            return 0.0
        longest = 0.0
        most = UNLIMITED
        tickets = self.places.tickets
        for at, bucket in enumerate(self.places.buckets):
            ticket = tickets[at]
            if not enforced(bucket):
                ticket.size = 0.0
                continue
            queue = ticket.queue
            ticket.size = self._expected(bucket, queue)
            left = tokens_left(bucket, now) - queue.reserved(now)
            lacking = queue.ahead(ticket, now) - left
            if self.acquires and queue.first_bytes >= 0.0:
                lacking += min(ticket.size, _savings(bucket))
            seconds = lacking / bucket.limit
            if seconds <= PAID_SECONDS:
                sharers = queue.waiting + (0 if ticket.in_line else 1)
                most = min(most, most_bytes(left, ticket.size, bucket.limit) / float(sharers))
            elif seconds > longest:
                longest = seconds
                self.longest = bucket
        if longest > 0.0:
            return self._wait(longest, now)
        if self.acquires:
            self._reserve_all(now)
        self._grant(most, now)
        return 0.0

    def ask_beside(self, others: int, max_bytes: int, now: float) -> bool:
        """Grant the fetch although others of its connection are in flight, if its response is expected to be
        small and the tokens suffice for the max_bytes of all of them; return whether it is granted.
        """
        if not small(self.size):
            return False
        self._asked_at = now
        room = float((others + 1) * max(max_bytes, LEAST_ROOM_BYTES))
        return max_bytes >= 0 and self._grant_if_ample(room, now)

    def _grant_if_ample(self, room: float, now: float) -> bool:
        """Grant the fetch if no other waits for its buckets, and each has `room` tokens and GROWTH times the
        bytes that the fetch is expected to bring; return whether it is granted. Nearly all fetches are
        granted here.

        The rules are those of ask(), which a fetch with ample tokens need not follow one by one: the tokens
        are those after the bucket's last use, however many have been refilled since.
        """
        if self.size == UNKNOWN_SIZE or self.acquires:
            return False
        expected = float(self.size)
        wanted = expected * GROWTH
        least = wanted if wanted > room else room
        unlimited = UNLIMITED  # a local variable, which costs less in the loop
        lowest = unlimited
        buckets = self.places.buckets
        tickets = self.places.tickets
        count: native = len(buckets)
        at: native = 0
        while at < count:
            bucket = buckets[at]
            ticket = tickets[at]
            at += 1
            limit = bucket.limit
            if limit == unlimited or bucket.observed:
                ticket.size = 0.0
                continue
            tokens = bucket.tokens
            if tokens is None:
                return False
            left = tokens.at_least
            queue = ticket.queue
            if not queue.unused:
                if queue.any_waits:
                    return False
                left -= queue.reserved(now)
            if left < least:
                return False
            ticket.size = expected
            if limit < lowest:
                lowest = limit
        bound = UNLIMITED
        if lowest != UNLIMITED:
            bound = lowest * LEAST_FETCH_SECONDS
            if wanted > bound:
                bound = wanted
        self._grant(bound, now)
        return True

    def _expected(self, bucket: Bucket, queue: FetchQueue) -> float:
        """The bytes that the fetch is expected to bring, which it reserves of a bucket."""
        if self.size == UNKNOWN_SIZE:
            return first_fetch_bytes(bucket, queue)
        # The next acquired records may go to any consumer of the group, so the average response of all of
        # them is the least to expect.
        return max(float(self.size), queue.first_bytes) if self.acquires else float(self.size)

    def _reserve_all(self, now: float) -> None:
        """Reserve all tokens of the buckets that have not seen a response yet: a batch of the broker may be
        larger than all of them. Until one response is known, others wait: their records would stay locked if
        their responses were withheld.
        """
        for at, bucket in enumerate(self.places.buckets):
            ticket = self.places.tickets[at]
            queue = ticket.queue
            if enforced(bucket) and queue.first_bytes < 0.0:
                ticket.size += max(tokens_left(bucket, now) - queue.reserved(now), 0.0)

    def _grant(self, most: float, now: float) -> None:
        """Reserve the sizes of the tickets, and let the response have `most` bytes."""
        self.granted = self._placed = True
        for ticket in self.places.tickets:
            ticket.queue.grant(ticket, now)
        if most != UNLIMITED:
            self.bound(max(int(most), 1))

    def _wait(self, longest: float, now: float) -> float:
        """Wait in the queues of all buckets; return the seconds after which to ask again."""
        self._placed = True
        again = LEAST_RETRY_SECONDS
        for ticket in self.places.tickets:
            queue = ticket.queue
            again = max(again, min(longest, max(MOST_RETRY_SECONDS, queue.waiting / FETCHES_PER_SECOND)))
            queue.wait(ticket, now + again + RETURN_SECONDS)
        self._retry_at = now + again
        return again

    # When the client gets an empty response

    def retry_seconds(self, now: float) -> float:
        """The seconds until the client should fetch again, because the debts are paid and there may be bytes
        for it.
        """
        seconds = self._retry_at - now
        for bucket in self.places.buckets:
            if enforced(bucket):
                seconds = max(seconds, bucket.wait(now))
        # Quota.withholds() may have found a bucket that the fetch does not have.
        longest = self.longest
        if longest is not None and enforced(longest):
            seconds = max(seconds, longest.wait(now))
        return seconds

    def keep_places(self, until: float) -> None:
        """Note that the client will fetch again at this time."""
        self._placed = True
        for ticket in self.places.tickets:
            if not ticket.granted:
                ticket.queue.wait(ticket, until + RETURN_SECONDS)

    # When the response has arrived

    def withholds(self, size: int, now: float) -> bool:
        """Whether the client gets no records instead of those in a response that has arrived, of `size`
        bytes.
        """
        for bucket in self.places.buckets:
            tokens = bucket.tokens
            if tokens is not None and tokens.at_least >= 0.0:  # nearly always: no debt
                continue
            left = tokens_left(bucket, now)
            if left < 0.0 and enforced(bucket) and self._owes_too_much(bucket, left, float(size)):
                self.longest = bucket
                return True
        return False

    def _owes_too_much(self, bucket: Bucket, left: float, size: float) -> bool:
        """Whether the debt of a bucket is too large; `left` is below zero."""
        tolerated = DEBT_SECONDS * bucket.limit
        if not self.acquires:
            return left < -tolerated
        # The records would stay locked, and be delivered again later, so more is tolerated: as much as Kafka
        # delivers to an idle client at once.
        if bucket.tokens is None:
            # With Kafka's rate, as Kafka: every response is withheld while the rate is over the limit.
            return True
        return left < -tolerated and left - size < -bucket.window_seconds * bucket.limit

    def settle(self, size: int, delivered: int, until: float, now: float) -> None:
        """Note that the response of this size has arrived, and how many bytes of it have been charged. The
        client is muted until `until`.
        """
        first = self.size == UNKNOWN_SIZE
        self.granted = False
        self._placed = until > now
        self.size = size
        brought = float(size)
        charged = float(delivered)
        tickets = self.places.tickets
        if not first and not self.acquires and until <= now:  # nearly always: the client is not muted
            for ticket in tickets:
                ticket.queue.renew(ticket, brought, charged)
            return
        for at, bucket in enumerate(self.places.buckets):
            ticket = tickets[at]
            queue = ticket.queue
            queue.renew(ticket, brought, charged)
            if until > now:
                queue.wait(ticket, until + RETURN_SECONDS)
            if self.acquires:
                queue.first_response(brought, brought)
            elif first:
                queue.first_response(brought, bucket.limit * FIRST_FETCH_SECONDS)

    def cancel(self) -> None:
        """Note that the fetch is not forwarded although it has been granted."""
        self.granted = self._placed = False
        for ticket in self.places.tickets:
            ticket.queue.renew(ticket, ticket.size, 0.0)

    def end(self) -> None:
        """Give up the places, because the connection has ended or has other grants. The reservation of a
        fetch in flight is charged: otherwise a client would gain by disconnecting.
        """
        if not self._placed:
            return
        self._placed = False
        for at, bucket in enumerate(self.places.buckets):
            ticket = self.places.tickets[at]
            reserved = ticket.queue.end(ticket)
            if reserved > 0.0 and enforced(bucket):
                bucket.record(reserved, self._asked_at)


def small(size: int) -> bool:
    """Whether responses of this size, which may be UNKNOWN_SIZE, may be in flight beside others."""
    return 0 <= size <= BESIDE_BYTES


def _savings(bucket: Bucket) -> float:
    """Return the most tokens that a fetch which acquires records (ShareFetch) waits for. Its records are
    delivered even if they exceed the tokens, so it waits for more tokens rather than cause a debt. Kafka's
    rate is seldom 0, so half a window's worth is enough without a token bucket.
    """
    tokens = bucket.tokens
    return tokens.burst if tokens is not None else bucket.limit * bucket.window_seconds / 2.0
