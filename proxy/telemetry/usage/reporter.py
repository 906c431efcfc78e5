"""UsageReporter: makes usage events of the counters of each interval, and passes them to the sinks."""

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final

from proxy.quota.usage import ClientUsage, Tally, Usage, UsageLedger
from proxy.telemetry.topic_name_lookup import TopicNameLookup
from proxy.telemetry.usage.events import Encoded, UsageEvent, encode
from proxy.telemetry.usage.sink import Sink
from proxy.wire.api_keys import api_name
from proxy.wire.cursor import NO_ID, NO_PARTITION

log = logging.getLogger(__name__)
AT_A_TIME: Final = 200
"""Clients, or events, that are processed before the event loop runs other work."""
NAMES_POLL_SECONDS: Final = 0.05
NAMES_POLLS: Final = 20
"""The cluster has a second, 20 polls, to name the topics that requests named by id. A longer wait would make
the report late."""
EARLY_MS: Final = 1000
"""A report comes at the end of an interval. If it comes this long before its start, the clock is set back."""
FINISH_SECONDS: Final = 5.0
"""How long the delivery of the last events may delay a shutdown."""


class Source:
    """The usage of one listener."""

    def __init__(self, listener: str, ledger: UsageLedger, names: TopicNameLookup) -> None:
        self.listener: Final = listener
        self.ledger: Final = ledger
        self.names: Final = names


_Place = tuple[int, str, str, int, str, int]
"""Node id, user, client id, API key, topic, partition."""


class UsageReporter:
    """Reports intervals that begin at multiples of their length, by the wall clock.

    Usage that is counted while an interval is reported belongs to the next one, so none is lost. The length
    of an interval is measured by the monotonic clock. After the wall clock was set back, intervals begin some
    ms later than at a multiple, one more each time, so that no two have the same start.
    """

    def __init__(
        self,
        cluster: str,
        proxy: str,
        interval_seconds: int,
        sources: Sequence[Source],
        sinks: Sequence[Sink],
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`proxy` is name_of_this_run(); `clock` returns seconds since the epoch, `monotonic` seconds."""
        self.sinks: Final = tuple(sinks)
        self._cluster: Final = cluster
        self._proxy: Final = proxy
        self._interval_ms: Final = interval_seconds * 1000
        self._sources: Final = tuple(sources)
        self._clock: Final = clock
        self._monotonic: Final = monotonic
        self._set_back = 0
        """How often the clock was set back."""
        self._start_ms = self._aligned()
        self._started = monotonic() - (clock() - self._start_ms / 1000)
        self._one_at_a_time: Final = asyncio.Lock()

    def _aligned(self) -> int:
        """The start of the current interval by the clock."""
        offset = self._set_back % self._interval_ms
        return (int(self._clock() * 1000) - offset) // self._interval_ms * self._interval_ms + offset

    @property
    def problems(self) -> list[str]:
        """Why events are not delivered; empty if they are."""
        return [f"usage events are not delivered: {sink.problem}" for sink in self.sinks if sink.problem]

    async def run(self) -> None:
        """Report every interval until cancelled."""
        while True:
            left = (self._start_ms + self._interval_ms) / 1000 - self._clock()
            if left > 0:
                # If the clock is set back, the next report is due after one interval at most.
                await asyncio.sleep(min(left, self._interval_ms / 1000))
            await self.report()

    async def finish(self) -> None:
        """Report the last interval at shutdown, and wait for its delivery."""
        await self.report()
        await asyncio.gather(*(sink.finish(FINISH_SECONDS) for sink in self.sinks))

    async def report(self) -> None:
        """Close the interval, and pass its events to the sinks."""
        async with self._one_at_a_time:
            start_ms, length_ms = self._next()
            closed = [(source, source.ledger.close_interval()) for source in self._sources]
            for source, clients in closed:
                taken = await _taken(clients)
                try:
                    await self._report(source, taken, start_ms, length_ms)
                except Exception as error:  # noqa: BLE001
                    self._lose(len(taken), source, error)

    def _next(self) -> tuple[int, int]:
        """Begin the next interval. Returns the start and the length of the last one, in ms."""
        start_ms = self._start_ms
        now_ms, now = self._clock() * 1000, self._monotonic()
        if now_ms < start_ms - EARLY_MS:
            self._set_back += 1
            self._start_ms = self._aligned()
        else:
            # The timer may be a little early, or another interval may be over already.
            self._start_ms = max(self._aligned(), start_ms + self._interval_ms)
        intervals = max(round((now - self._started) * 1000 / self._interval_ms), 1)
        # The start of the interval by the monotonic clock.
        self._started = now - (now_ms - self._start_ms) / 1000
        return start_ms, intervals * self._interval_ms

    async def _report(self, source: Source, taken: Sequence[Usage], start_ms: int, length_ms: int) -> None:
        """Make the events of a listener, and pass them to the sinks. An error in one event does not affect
        the others.
        """
        tallies = await _named(source.names, taken)
        events: list[Encoded] = []
        failed: list[Exception] = []
        for place, tally in tallies.items():
            try:
                events.append(encode(self._event(source.listener, place, tally, start_ms, length_ms)))
            except Exception as error:  # noqa: BLE001
                failed.append(error)
            if len(events) == AT_A_TIME:
                self._offer(events)
                events = []
                await asyncio.sleep(0)
        self._offer(events)
        if failed:
            self._lose(len(failed), source, failed[0])

    def _lose(self, count: int, source: Source, error: Exception) -> None:
        """Count and log the events that an unexpected error has lost."""
        log.error(
            "dropped %d usage events of listener %s after an error: %r",
            *(count, source.listener, error),
            exc_info=error,
        )
        for sink in self.sinks:
            sink.lost += count

    def _offer(self, events: Sequence[Encoded]) -> None:
        for sink in self.sinks:
            sink.offer(events)

    def _event(self, listener: str, place: _Place, tally: Tally, start_ms: int, length_ms: int) -> UsageEvent:
        """Return the event of what a client did at a place in an interval."""
        node_id, user, client_id, api_key, topic, partition = place
        return UsageEvent(
            cluster=self._cluster,
            proxy=self._proxy,
            broker=node_id,
            listener=listener,
            interval_start_ms=start_ms,
            interval_ms=length_ms,
            user=user,
            client_id=client_id,
            api=api_name(api_key),
            topic=topic or None,
            partition=None if partition == NO_PARTITION else partition,
            requests=tally.requests,
            bytes_in=tally.bytes_in,
            bytes_out=tally.bytes_out,
            throttled_requests=tally.throttled_requests,
            throttle_ms=round(tally.throttle_seconds * 1000),
            rejected_requests=tally.rejected_requests,
            rejected_bytes=tally.rejected_bytes,
            quota=tally.quota or None,
        )


def name_of_this_run() -> str:
    """A name for this process that no other process has, so that the usage of both is added up."""
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


async def _taken(clients: Sequence[ClientUsage]) -> list[Usage]:
    taken: list[Usage] = []
    for number, client in enumerate(clients, 1):
        taken.extend(client.take())
        if number % AT_A_TIME == 0:
            await asyncio.sleep(0)
    return taken


async def _named(names: TopicNameLookup, taken: Sequence[Usage]) -> dict[_Place, Tally]:
    """Sum up usage by topic name; the id stands for a topic whose name is unknown."""
    await _ask_names(names, {usage.topic_id for usage in taken if usage.topic_id != NO_ID})
    tallies: dict[_Place, Tally] = {}
    for number, usage in enumerate(taken, 1):
        topic = usage.topic
        if not topic and usage.topic_id != NO_ID:
            topic = names.topic_name(usage.topic_id) or usage.topic_id.hex()
        place = (usage.node_id, usage.user, usage.client_id, usage.api_key, topic, usage.partition)
        known = tallies.get(place)
        if known is None:
            tallies[place] = usage.tally
        else:
            known.add(usage.tally)
        if number % (AT_A_TIME * 10) == 0:
            await asyncio.sleep(0)
    return tallies


async def _ask_names(names: TopicNameLookup, topic_ids: set[bytes]) -> None:
    """Request the names of these topics; return when they are known, or after NAMES_POLLS."""
    unknown = {topic_id for topic_id in topic_ids if not names.topic_name(topic_id)}
    if not unknown:
        return
    names.want_names(unknown)
    for _ in range(NAMES_POLLS):
        await asyncio.sleep(NAMES_POLL_SECONDS)
        if all(names.topic_name(topic_id) for topic_id in unknown):
            return
