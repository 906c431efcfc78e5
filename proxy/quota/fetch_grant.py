"""FetchGrant: what the quotas of consumers allow one fetch.

1. Quota.limit_fetch() adds the buckets that the response will be charged to.
2. ask() grants the fetch, or returns the seconds after which to ask again, because a bucket is in debt or has
   promised its tokens to other fetches. While earlier fetches of the connection await their responses,
   ask_beside() grants it only if there are tokens for all of them.
3. The response is charged, and settle() returns what was reserved.

Reservations are estimates: a fetch may bring more than any fetch before. So withholds() returns for each
response whether its buckets are so far in debt by then that the client gets an empty response, as from Kafka.
"""

from typing import Final, final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_queue import RETURN_SECONDS, FetchQueue, Ticket

NO_BOUND: Final = -1
"""In place of bytes: there is no bound."""
UNKNOWN: Final = -1
"""The expected bytes of a connection's first response."""
LEAST_FETCH_SECONDS: Final = 0.25
"""A fetch that is forwarded may bring this many seconds of the limit, even if the bucket has just paid its
debt. Less would mean many small responses, more would mean longer waits between them: this makes about four
responses per second. Consumers that wait for the same bucket share it."""
FIRST_FETCH_SECONDS: Final = 0.05
"""Seconds of the limit that are reserved for the first fetch that a bucket sees."""
GROWTH: Final = 20.0
"""A fetch may bring this many times the bytes that it is expected to bring: the broker does not send all
tokens to each of many fetches that start at once."""
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
LEAST_WAIT_SECONDS: Final = 0.005
"""The shortest time until the tokens are asked for again."""
MOST_WAIT_SECONDS: Final = 1.0
"""The longest time until then, because a limit may change meanwhile."""
FETCHES_PER_SECOND: Final = 1000.0
"""The waiting fetches of a bucket that ask again in a second, at most: if more wait, each asks less often."""
PAID_SECONDS: Final = 1e-6
"""A debt that is paid within this time counts as paid, because doubles cannot represent the difference."""


def tokens_left(bucket: Bucket, now: float) -> float:
    """The bytes that a bucket allows now; below zero in debt."""
    tokens = bucket.tokens
    if tokens is not None:
        return tokens.measure(now)
    wait = bucket.wait(now)
    if wait > 0.0:
        return -wait * bucket.limit
    left = (bucket.limit - bucket.measure(now)) * bucket.window_seconds
    allowance = bucket.allowance
    return left if allowance is None else min(left, allowance.measure(now))


@final
@mypyc_attr(free_list_len=1)
class FetchGrant:
    """The grant of one fetch. The next fetch of the connection takes over its places in the queues."""

    __slots__ = (
        "_added",
        "_added_at",
        "_added_size",
        "_asked_at",
        "_at",
        "_buckets",
        "_count",
        "_expected",
        "_last",
        "_next",
        "_retry_at",
        "_same",
        "_tickets",
        "acquires",
        "granted",
        "longest",
        "max_bytes",
        "settled",
        "size",
        "watched",
    )

    def __init__(self, last: "FetchGrant | None" = None) -> None:
        """`last`: the grant of the connection's last fetch; None for the first. If it awaits its response,
        its places in the queues stay its own.
        """
        self._expected: Final[int] = UNKNOWN if last is None else last.size
        if last is not None and last.granted and not last.settled:
            last = None
        self._last = last
        self._buckets: list[Bucket] = [] if last is None else last._buckets
        """A connection may use thousands. Two fetches mostly have the same buckets in the same order: then
        they share these lists.
        """
        self._tickets: list[Ticket] = [] if last is None else last._tickets
        """The connection's place in the queue of each of them."""
        self._count: native = 0
        """How many buckets have been added."""
        self._same = last is not None
        """Whether the lists are those of the last fetch, which has had these buckets at the same places."""
        self._added: list[Bucket] | None = None
        """The list that add_all() has added, and how long it was. Its owner changes it only by appending."""
        self._added_size: native = 0
        self._added_at: native = 0
        """How many buckets had been added before; -1 if not all buckets of the list were enforced."""
        self._next: native = 0
        """The place of the bucket that expects() probably looks for next."""
        self._at: dict[Bucket, int] | None = None
        """The buckets' places in these lists; None if nothing has been looked for."""
        self._asked_at = 0.0
        self._retry_at = 0.0
        self.acquires = False
        """Whether the broker locks the records of the response for this consumer (ShareFetch)."""
        self.granted: bool = False
        """Whether the fetch may be forwarded."""
        self.settled: bool = False
        """Whether its response has been charged."""
        self.size: int = self._expected
        """The size of its response, when the response has arrived."""
        self.max_bytes = NO_BOUND
        """The maximum size of the response in bytes."""
        self.watched = False
        """Whether to ask Quota.withholds() about the response, whatever its buckets."""
        self.longest: Bucket | None = None
        """The bucket with the longest wait, if it had to wait."""

    @property
    def any(self) -> bool:
        """Whether any quota applies."""
        return self.watched or self._count > 0

    def bound(self, max_bytes: int) -> None:
        """Lower the maximum size of the response to this."""
        if self.max_bytes == NO_BOUND or max_bytes < self.max_bytes:
            self.max_bytes = max_bytes

    def add(self, bucket: Bucket) -> None:
        """Add a bucket to which the response will be charged; each bucket once."""
        if not _enforced(bucket):
            return
        at = self._count
        if self._same:
            if at < len(self._buckets) and self._buckets[at] is bucket:
                ticket = self._tickets[at]
                if not ticket.granted:
                    ticket.size = self._size(bucket)
                    self._count = at + 1
                    return
            self._part()
        self._tickets.append(self._ticket(bucket, queue_of(bucket)))
        self._buckets.append(bucket)
        self._count = at + 1

    def add_all(self, buckets: list[Bucket]) -> None:
        """Add each of these buckets, as add() does. If the last fetch had the same list, as for most fetches,
        this takes one step.
        """
        size: native = len(buckets)
        start = self._count
        last = self._last
        self._added = buckets
        self._added_size = size
        if (
            last is not None
            and self._same
            and last.settled  # so no ticket is granted, and each has the size of the last response
            and last._added is buckets
            and last._added_size == size
            and last._added_at == start
        ):
            self._added_at = start
            self._count = start + size
            return
        for bucket in buckets:
            self.add(bucket)
        self._added_at = start if self._count == start + size else -1

    def _part(self) -> None:
        """Copy the buckets that have been added into lists of its own: they differ from the last fetch's."""
        self._same = False
        self._buckets = self._buckets[: self._count]
        self._tickets = self._tickets[: self._count]

    def _size(self, bucket: Bucket) -> float:
        """The bytes that the fetch reserves of a bucket."""
        if self._expected != UNKNOWN:
            return float(self._expected)
        queue = queue_of(bucket)
        return queue.first_bytes if queue.first_bytes >= 0.0 else bucket.limit * FIRST_FETCH_SECONDS

    def _ticket(self, bucket: Bucket, queue: FetchQueue) -> Ticket:
        """The connection's place, or a new one."""
        size = self._size(bucket)
        last = self._last
        at = -1 if last is None else last._find(bucket, self._count)
        if last is None or at < 0:
            return queue.newcomer(size)
        ticket = last._tickets[at]
        if ticket.granted:
            return queue.newcomer(size)
        ticket.size = size
        return ticket

    def _find(self, bucket: Bucket, expected: native) -> int:
        """A bucket's place in the lists, probably the `expected` one; -1 if it is not in them."""
        buckets = self._buckets
        if expected < len(buckets) and buckets[expected] is bucket:
            return expected
        at = self._at
        if at is None:
            at = self._at = {each: place for place, each in enumerate(buckets)}
        return at.get(bucket, -1)

    def count_of(self, buckets: list[Bucket]) -> native:
        """How many of these buckets, from the first on, it has by add_all(); 0 if they are another list."""
        return self._added_size if self._added is buckets and self._added_at >= 0 else 0

    def has(self, bucket: Bucket) -> bool:
        """Whether it has a place or a reservation in this bucket."""
        return self._find(bucket, 0) >= 0

    def expects(self, bucket: Bucket) -> bool:
        """Whether it has a place or a reservation in this bucket, if the buckets of a response are asked for
        in the order of the grant. If not, has() tells.
        """
        buckets = self._buckets
        at = self._next
        if at < len(buckets) and buckets[at] is bucket:
            self._next = at + 1
            return True
        # The first bucket may be the client's own, which no partition has.
        if at + 1 < len(buckets) and buckets[at + 1] is bucket:
            self._next = at + 2
            return True
        return False

    def begin(self) -> None:
        """Note that all buckets are known: give up the places of the last fetch in other buckets."""
        last = self._last
        self._last = None
        if last is None:
            return
        if self._same:
            if self._count == len(self._buckets):
                self._at = last._at
                return
            self._part()
        for at, bucket in enumerate(last._buckets):
            if self._find(bucket, at) < 0:
                ticket = last._tickets[at]
                ticket.queue.end(ticket)

    def ask(self, now: float) -> float:
        """Grant the fetch and return 0.0, or return the seconds after which to ask again. Until then the
        fetch keeps its places.
        """
        self._asked_at = now
        if self._grant_at_once(0.0, now):
            return 0.0
        longest = 0.0
        most = UNLIMITED
        tickets = self._tickets
        for at, bucket in enumerate(self._buckets):
            ticket = tickets[at]
            limit = bucket.limit
            if limit == UNLIMITED or bucket.observed:
                continue
            queue = ticket.queue
            tokens = bucket.tokens
            left = tokens_left(bucket, now) if tokens is None else tokens.measure(now)
            left -= queue.reserved(now)
            if left >= 0.0 and not queue.any_waits and not self.acquires:
                # No fetch waits for the bucket, and there are tokens.
                share = _most(left, ticket.size, limit)
                if share < most:
                    most = share
                continue
            lacking = queue.ahead(ticket, now) - left
            if self.acquires and queue.first_bytes >= 0.0:
                # The next records may go to any consumer of the group, so the average response of all of them
                # is the least to expect.
                known = self._expected != UNKNOWN
                ticket.size = max(ticket.size, queue.first_bytes) if known else queue.first_bytes
                lacking += min(ticket.size, _savings(bucket))
            if lacking > PAID_SECONDS * limit:
                if lacking / limit > longest:
                    longest = lacking / limit
                    self.longest = bucket
                continue
            sharers = queue.waiting + (0 if ticket.in_line else 1)
            most = min(most, _most(left, ticket.size, limit) / float(sharers))
        if longest <= 0.0:
            self._grant(most, now)
            return 0.0
        again = LEAST_WAIT_SECONDS
        for ticket in tickets:
            queue = ticket.queue
            again = max(again, min(longest, max(MOST_WAIT_SECONDS, queue.waiting / FETCHES_PER_SECOND)))
            queue.wait(ticket, now + again + RETURN_SECONDS)
        self._retry_at = now + again
        return again

    def ask_beside(self, others: int, max_bytes: int, now: float) -> bool:
        """Grant the fetch although others of its connection are in flight, if its response is expected to be
        small and the tokens suffice for the max_bytes of all of them; return whether it is granted.
        """
        if self._expected > BESIDE_BYTES:
            return False
        self._asked_at = now
        room = float((others + 1) * max(max_bytes, LEAST_ROOM_BYTES))
        return max_bytes >= 0 and self._grant_at_once(room, now)

    def _grant_at_once(self, room: float, now: float) -> bool:
        """Grant the fetch if no other waits for its buckets, and each has `room` tokens and GROWTH times the
        bytes that the fetch is expected to bring. These are the tokens after the last use: with so many, it
        does not matter how many have been refilled since. Nearly all fetches are granted here. Return whether
        it is granted.
        """
        if self._expected == UNKNOWN or self.acquires:
            return False
        wanted = float(self._expected) * GROWTH
        least = wanted if wanted > room else room
        lowest = UNLIMITED
        buckets = self._buckets
        tickets = self._tickets
        size: native = len(buckets)
        at: native = 0
        while at < size:
            bucket = buckets[at]
            limit = bucket.limit
            queue = tickets[at].queue
            at += 1
            if limit == UNLIMITED or bucket.observed:
                continue
            tokens = bucket.tokens
            if tokens is None:
                return False
            left = tokens.at_least
            if not queue.unused:
                if queue.any_waits:
                    return False
                left -= queue.reserved(now)
            if left < least:
                return False
            if limit < lowest:
                lowest = limit
        bound = UNLIMITED
        if lowest != UNLIMITED:
            bound = lowest * LEAST_FETCH_SECONDS
            if wanted > bound:
                bound = wanted
        self._grant(bound, now)
        return True

    def _grant(self, most: float, now: float) -> None:
        self.granted = True
        buckets = self._buckets
        tickets = self._tickets
        size: native = len(buckets)
        at: native = 0
        while at < size:
            bucket = buckets[at]
            ticket = tickets[at]
            at += 1
            if _enforced(bucket):
                queue = ticket.queue
                if self.acquires and queue.first_bytes < 0.0:
                    # A batch may be larger than all tokens. Until one response is known, others wait: their
                    # records would stay locked if their responses were withheld.
                    ticket.size += max(tokens_left(bucket, now) - queue.reserved(now), 0.0)
                queue.grant(ticket, now)
        if most != UNLIMITED:
            self.bound(max(int(most), 1))

    def debt_seconds(self, now: float) -> float:
        """The seconds until the buckets have paid their debts; 0.0 if none has a debt."""
        longest = 0.0
        for bucket in self._buckets:
            if _enforced(bucket):
                longest = max(longest, bucket.wait(now))
        return longest

    def retry_seconds(self, now: float) -> float:
        """The seconds until the client should fetch again, because the debts are paid and there may be bytes
        for it.
        """
        seconds = max(self.debt_seconds(now), self._retry_at - now)
        longest = self.longest
        if longest is not None and _enforced(longest):
            seconds = max(seconds, longest.wait(now))
        return seconds

    def withholds(self, size: int, now: float) -> bool:
        """Whether the client gets no records instead of those in a response that has arrived, of `size`
        bytes.
        """
        for bucket in self._buckets:
            tokens = bucket.tokens
            if tokens is not None and tokens.at_least >= 0.0:  # nearly always: no debt
                continue
            left = tokens_left(bucket, now)
            if left < 0.0 and _enforced(bucket) and self._owes_too_much(bucket, left, float(size)):
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

    def keep_places(self, until: float) -> None:
        """Note that the client will fetch again at this time."""
        for ticket in self._tickets:
            if not ticket.granted:
                ticket.queue.wait(ticket, until + RETURN_SECONDS)

    def settle(self, size: int, delivered: int, until: float, now: float) -> None:
        """Note that the response of this size has arrived, and how many bytes of it have been charged. The
        client is muted until `until`.
        """
        self.settled = True
        self.size = size
        brought = float(size)
        charged = float(delivered)
        first = self._expected == UNKNOWN
        if not first and not self.acquires and until <= now:  # nearly always: the client is not muted
            for ticket in self._tickets:
                ticket.queue.renew(ticket, brought, charged)
            return
        for at, bucket in enumerate(self._buckets):
            ticket = self._tickets[at]
            queue = ticket.queue
            queue.renew(ticket, brought, charged)
            if until > now:
                queue.wait(ticket, until + RETURN_SECONDS)
            if self.acquires:
                queue.first_response(brought, brought)
            elif first:
                queue.first_response(brought, bucket.limit * FIRST_FETCH_SECONDS)

    def end(self) -> None:
        """Note that the fetch will not be forwarded."""
        for ticket in self._tickets:
            ticket.queue.end(ticket)

    def abandon(self) -> None:
        """Note that the connection has ended. The reservation of a fetch in flight is charged: otherwise a
        client would gain by disconnecting.
        """
        for at, bucket in enumerate(self._buckets):
            ticket = self._tickets[at]
            reserved = ticket.queue.end(ticket)
            if reserved > 0.0 and _enforced(bucket):
                bucket.record(reserved, self._asked_at)


def free(bucket: Bucket, now: float) -> bool:
    """Whether a bucket has tokens that no fetch has reserved or waits for."""
    queue = queue_of(bucket)
    return tokens_left(bucket, now) - queue.reserved(now) - queue.ahead(None, now) >= 0.0


def _most(left: float, size: float, limit: float) -> float:
    """The bytes that a fetch may bring of those that are left of a bucket, if no other fetch waits for it."""
    share = size * GROWTH
    if left < share:
        share = left
    least = limit * LEAST_FETCH_SECONDS
    return share if share > least else least


def _savings(bucket: Bucket) -> float:
    """Return the most tokens that a fetch which acquires records (ShareFetch) waits for. Its records are
    delivered even if they exceed the tokens, so it waits for more tokens rather than cause a debt. Kafka's
    rate is seldom 0, so half a window's worth is enough without a token bucket.
    """
    tokens = bucket.tokens
    return tokens.burst if tokens is not None else bucket.limit * bucket.window_seconds / 2.0


def _enforced(bucket: Bucket) -> bool:
    return bucket.limit != UNLIMITED and not bucket.observed


def queue_of(bucket: Bucket) -> FetchQueue:
    """The bytes of a bucket that fetches have reserved."""
    queue = bucket.fetch_queue
    if queue is None:
        queue = bucket.fetch_queue = FetchQueue()
    return queue
