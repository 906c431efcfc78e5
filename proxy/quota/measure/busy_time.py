"""BusyTime: the most that a broker's threads can have worked on the requests of one bucket."""

from typing import Final, final

_BEFORE: Final = float("-inf")


@final
class BusyTime:
    """Bounds the time that is charged for requests that are at a broker at the same moment.

    A proxy sees for how long each request was at the broker. With more requests than threads, most of this is
    the time in the broker's queue, which Kafka does not charge. In any period, threads work for no longer
    than the period times their number. So requests that begin and end in a period are charged no more
    together.

    The period begins with the first of a group of requests. It ends when a request begins before which the
    threads had time to spare: this request begins the next group. Each group is charged at least what Kafka
    charges for it, because each of its requests is charged its whole time, or all of them together the whole
    time of all threads.
    """

    __slots__ = ("_charged", "_since")

    def __init__(self) -> None:
        self._since = _BEFORE
        """When the first request of the group began."""
        self._charged = 0.0
        """What has been charged for the group."""

    def charge(self, began: float, now: float, threads: float) -> float:
        """Return what to charge for a request that began then and has ended now, in seconds. `threads`: the
        number of the broker's threads, at least 1.
        """
        if self._charged < threads * (began - self._since):
            self._since = began
            self._charged = 0.0
        elif began < self._since:
            self._since = began
        seconds = min(now - began, threads * (now - self._since) - self._charged)
        self._charged += seconds
        return seconds
