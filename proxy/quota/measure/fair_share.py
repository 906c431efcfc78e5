"""FairShare: divides a bucket's debt among the connections that made it."""

from bisect import bisect_left, insort
from typing import Final, final

from proxy.quota.identity import Identity

_REMEMBERED_AT_LEAST: Final = 1000
"""How many connections without debt are kept before they are removed. A connection that is not known waits
for the whole debt, so removing them at once would make regular ones wait too long; this trades it for
memory."""
USERS_AT_MOST: Final = 10_000
"""How many users a bucket without tokens remembers while it is over its limit. Any further user counts as one
that has used it: otherwise a client with many users would gain by causing them to be forgotten.
"""


@final
class FairShare:
    """Divides the refill of a token bucket equally among its debtors, as processor sharing does (fair
    queueing).

    If every connection waited until the bucket's whole debt is paid, as in Kafka, connections would be served
    in turn, one request each: one that sends requests of 1 MiB would get 64 times the rate of one that sends
    16 KiB. Here a connection waits until its own debt is paid, while all debtors get equal parts of the
    refill. With requests of equal size the result is the same as Kafka's.

    A connection that is new to a debt waits for all that its user owes: otherwise a client would gain by
    reconnecting, and the debt of closed connections would be lost. Debts of other users only take their parts
    of the refill, so that no user pays for another.

    Amounts are tokens. `_paid` is the virtual time of processor sharing: the tokens that a connection would
    have got if it had been a debtor all the time. A debt is stored as the `_paid` at which it ends, so one
    addition pays all debtors.
    """

    def __init__(self, now: float) -> None:
        self._at = now
        self._paid = 0.0
        self._ends: Final[list[float]] = []
        """An entry for each debtor, ascending."""
        self._end_of: Final[dict[Identity, float]] = {}
        """The debtors, and some connections whose debt is paid."""
        self._latest: Final[dict[str, float]] = {}
        """The latest end of each user's debts, also of some that are paid."""
        self.ahead_seconds = 0.0
        """After owe(): the part of the wait for what the user owed before, if the connection is new to the
        debt; else 0.0.
        """

    def pay(self, rate: float, now: float) -> None:
        """Divide what has refilled since the last call, at `rate` per second, among the debtors."""
        refilled = rate * max(now - self._at, 0.0)
        self._at = max(now, self._at)
        self._divide(refilled)

    def _divide(self, refilled: float) -> None:
        ends = self._ends
        paid = 0
        while paid < len(ends):
            owing = len(ends) - paid
            part = ends[paid] - self._paid
            if part * owing > refilled:
                self._paid += refilled / owing
                break
            refilled -= part * owing
            self._paid = ends[paid]
            paid += 1
        del ends[:paid]

    @property
    def debtors(self) -> int:
        """The connections whose debts were not paid at the last pay()."""
        return len(self._ends)

    def owe(self, who: Identity, tokens: float, rate: float, now: float) -> float:
        """Add to the debt of a connection; return how many seconds it must wait."""
        self.pay(rate, now)
        ends = self._ends
        end = self._paid
        before = self._end_of.get(who)
        latest = self._latest.get(who.principal, end)
        if before is not None and before > end:
            del ends[bisect_left(ends, before)]
            end = before
        self.ahead_seconds = self._seconds_until(latest, rate) if before is None else 0.0
        end += tokens
        insort(ends, end)
        self._end_of[who] = end
        self._latest[who.principal] = max(latest, end)
        if len(self._end_of) > _REMEMBERED_AT_LEAST + 2 * len(ends):
            self._forget_paid()
        return self._seconds_until(end if before is not None else max(latest, end), rate)

    def give_back(self, who: Identity, tokens: float, rate: float, now: float) -> None:
        """Subtract tokens from the debt of a connection, because their use has not happened.

        The payments for them are divided among the other debtors. Otherwise these would owe tokens that the
        bucket has.
        """
        self.pay(rate, now)
        before = self._end_of.get(who)
        if before is None:
            return
        owed = max(before - self._paid, 0.0)
        if owed > 0.0:
            del self._ends[bisect_left(self._ends, before)]
        end = before - tokens
        if end > self._paid:
            insort(self._ends, end)
            self._end_of[who] = end
        else:
            del self._end_of[who]
            self._divide(tokens - owed)
        if before >= self._latest.get(who.principal, before):
            same = [end for other, end in self._end_of.items() if other.principal == who.principal]
            self._latest[who.principal] = max(same, default=self._paid)

    def _seconds_until(self, end: float, rate: float) -> float:
        """The time until a debt with this end is paid."""
        if end <= self._paid:
            return 0.0
        ends = self._ends
        smaller = bisect_left(ends, end)
        owed = sum(ends[:smaller]) + end * (len(ends) - smaller)
        return (owed - self._paid * len(ends)) / rate

    def _forget_paid(self) -> None:
        paid = [who for who, end in self._end_of.items() if end <= self._paid]
        for who in paid:
            del self._end_of[who]
        users = [user for user, latest in self._latest.items() if latest <= self._paid]
        for user in users:
            del self._latest[user]


@final
class Debtors:
    """The connections that have used a bucket without tokens since it has been over its limit.

    Kafka's rate has no debt to divide: each connection waits until the whole bucket is within its limit.
    """

    def __init__(self) -> None:
        self._connections: Final[set[Identity]] = set()
        self._users: Final[set[str]] = set()

    def new(self, who: Identity) -> bool:
        """Note a use. Return whether the connection is new, and another of its user is not."""
        if who in self._connections:
            return False
        full = len(self._users) >= USERS_AT_MOST
        known = full or who.principal in self._users
        if len(self._connections) >= _REMEMBERED_AT_LEAST:
            self._connections.clear()
        self._connections.add(who)
        if not full:
            self._users.add(who.principal)
        return known
