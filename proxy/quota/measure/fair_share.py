"""FairShare: whose debt it is, where several connections have put one bucket into debt."""

from bisect import bisect_left, insort
from typing import Final, final

from proxy.quota.identity import Identity

_KNOWN_AT_LEAST: Final = 1000
"""So many whose debt is paid are remembered before they are forgotten."""


@final
class FairShare:
    """Divides what refills equally among those who owe, as if each had a bucket of its own (fair queueing).

    A bucket that made each connection wait until all of its debt is paid would serve them in turn, one
    request each: the one with requests of 1 MiB would get 64 times what one with 16 KiB gets. Here a
    connection waits until its own debt is paid, of which all get equal parts at a time. Where requests are of
    one size, this comes to the same.

    Whoever comes new into a debt waits until all of it is paid, as in Kafka: so nobody gains by connecting
    anew, and what a closed connection owes is not forgotten.

    Amounts are tokens. `_paid` is what each who owes has been given since nobody did; a debt is kept as the
    `_paid` at which it ends, so that paying all of them is one addition.
    """

    def __init__(self, now: float) -> None:
        self._at = now
        self._paid = 0.0
        self._ends: Final[list[float]] = []
        """Ascending, one for each who owes."""
        self._end_of: Final[dict[Identity, float]] = {}
        """Those who owe, and some whose debt is paid."""

    def pay(self, rate: float, now: float) -> None:
        """What has refilled since the last call, at `rate` per second, goes to those who owe."""
        refilled = rate * max(now - self._at, 0.0)
        self._at = max(now, self._at)
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

    def owe(self, who: Identity, tokens: float, rate: float, now: float) -> float:
        """`who` owes so many more; returns how many seconds it has to wait."""
        self.pay(rate, now)
        ends = self._ends
        end = self._paid
        before = self._end_of.get(who)
        if before is not None and before > end:
            del ends[bisect_left(ends, before)]
            end = before
        end += tokens
        insort(ends, end)
        self._end_of[who] = end
        if len(self._end_of) > _KNOWN_AT_LEAST + 2 * len(ends):
            self._forget_paid()
        if before is None:
            owed = sum(ends)
        else:
            smaller = bisect_left(ends, end)
            owed = sum(ends[:smaller]) + end * (len(ends) - smaller)
        return (owed - self._paid * len(ends)) / rate

    def _forget_paid(self) -> None:
        paid = [who for who, end in self._end_of.items() if end <= self._paid]
        for who in paid:
            del self._end_of[who]
