"""ServiceClock: the times at which a broker begins and ends its work on requests."""

from typing import final


@final
class ServiceClock:
    """Shared by the relays of a listener.

    The `now` of relays counts milliseconds, and a broker responds to many requests in less time. Waits end
    when `now` advances, so a request that has waited would mostly begin and end at the same `now`, and its
    time would be zero. Where quotas charge request time, the shell notes the time of each event by a finer
    clock of the same origin. Elsewhere the times are those of `now`, because reading the other clock costs
    CPU time.
    """

    __slots__ = ("event",)

    def __init__(self) -> None:
        self.event = 0.0
        """The time of the last event that the shell has noted."""

    def at(self, now: float) -> float:
        """Return the time of the event for which a relay is called at `now`. An event that was noted earlier,
        for another call, was before `now`.
        """
        event = self.event
        return event if event > now else now
