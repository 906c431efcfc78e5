"""StartsAtOnce: how many replicas start with one fetch of a follower.

A follower syncs a file to its disk for each replica that starts, and fetches nothing meanwhile. A fetch also
takes time on the network and the CPUs, however many replicas start with it. If that is most of the time,
several may start with one fetch: in-sync replicas then wait little longer than if one starts.
"""

import math
from typing import Final, final

FETCHES: Final = 3
"""The fetches of a round. The quickest of them counts: a busy machine only makes the others longer."""
LONGER_BY: Final = 1.5
"""The starts of a round may take at most this many times as long as the start of one replica."""
MOST: Final = 16
"""The largest number, because a disk may suddenly become slow."""
ROUNDS: Final = 8
"""In one of so many rounds, one replica starts with each fetch, to measure how long that takes. A number that
took too long is not tried again for so many rounds.
"""
LONGEST_SECONDS: Final = 0.5
"""A fetch with several starts that takes longer ends its round."""


@final
class StartsAtOnce:
    """Doubles the number round by round while the fetches do not take much longer, and otherwise halves it.

    count: the number of replicas that may start with the next fetch.
    """

    __slots__ = ("_fetches", "_least", "_more_at", "_most", "_of_one", "_rounds", "count")

    def __init__(self) -> None:
        self.count = 1
        self._most = 1
        """`count` in a round that does not measure the start of one."""
        self._more_at = 0
        """The round from which on `_most` may grow."""
        self._of_one = 0.0
        """Seconds that the start of one replica takes."""
        self._rounds = 0
        """The rounds that have ended."""
        self._fetches = 0
        """The fetches of this round, and the seconds of the quickest one."""
        self._least = math.inf

    def learn(self, began: int, seconds: float) -> None:
        """Take the number of replicas that began to get records with a fetch, and how long it took."""
        too_long = began > 1 and seconds > LONGEST_SECONDS
        if began == self.count:
            self._fetches += 1
            self._least = min(self._least, seconds)
        if self._fetches >= FETCHES or too_long:
            self._end_round(too_long or self._least > self._of_one * LONGER_BY)

    def _end_round(self, too_long: bool) -> None:
        self._rounds += 1
        if self.count == 1:
            self._of_one = self._least
        elif too_long:
            self._most = self.count // 2
            self._more_at = self._rounds + ROUNDS
        if self.count == self._most and self._rounds >= self._more_at:
            self._most = min(self._most * 2, MOST)
        self.count = 1 if self._rounds % ROUNDS == 0 else self._most
        self._fetches = 0
        self._least = math.inf
