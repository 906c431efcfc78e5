"""LatelyUsed: which limits other processes may have used during Kafka's window, as far as this one knows."""

from collections import OrderedDict
from typing import Final, final

from proxy.quota.limits.enforcement import KAFKA_WINDOW
from proxy.quota.measure.rates import SampledRate

LATELY_SECONDS: Final = KAFKA_WINDOW.total_seconds
"""For how long Kafka's rate remembers a use."""


@final
class LatelyUsed:
    """All times are on the log's clock."""

    def __init__(self) -> None:
        self._cooled: Final[OrderedDict[str, tuple[float, SampledRate]]] = OrderedDict()
        """Of the buckets that became cold in the last LATELY_SECONDS: when that was, and the rate of all
        processes together.
        """
        self._joined_at = -1.0
        """When this process became one of several; -1.0 before."""

    def join(self, now: float) -> None:
        """Note that other processes are live, too."""
        if self._joined_at < 0.0:
            self._joined_at = now

    def cool(self, key: str, rate: SampledRate, now: float) -> None:
        """Note that no process uses much of a limit any more."""
        self._cooled[key] = (now, rate)
        self._cooled.move_to_end(key)

    def heat(self, key: str) -> SampledRate | None:
        """Forget a limit, which is used again; return the same as rate()."""
        found = self._cooled.pop(key, None)
        return None if found is None else found[1]

    def rate(self, key: str) -> SampledRate | None:
        """The rate of all processes together; None if they have used no more than their parts."""
        found = self._cooled.get(key)
        return None if found is None else found[1]

    def forget(self, now: float) -> None:
        """Drop what is longer ago than Kafka's window."""
        cooled = self._cooled
        while cooled and now - cooled[next(iter(cooled))][0] > LATELY_SECONDS:
            cooled.popitem(last=False)

    def may_be(self, key: str, now: float) -> bool:
        """Whether other processes may have used more than their parts of a limit that is cold. A process that
        has joined lately does not know what they have used before.
        """
        return key in self._cooled or 0.0 <= self._joined_at > now - LATELY_SECONDS
