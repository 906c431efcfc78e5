"""LimitSharing: keeps this process's parts of the limits up to date."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from uuid import uuid4

from proxy.quota.engines import QuotaEngines
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.sharing.local_uses import LocalUses, hold
from proxy.quota.sharing.reported_uses import LocalUse
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import REPORT_SECONDS, Sharing
from proxy.server.shares_log import SharesLog

log = logging.getLogger(__name__)
JOIN_SECONDS: Final = 5.0
"""For how long clients wait at startup, once quotas are loaded, until the other processes know this one."""
REVIEW_SECONDS: Final = 0.5
"""The longest throttle time that is announced while several processes share: this process's part may grow at
any moment.
"""
PAUSE_FACTOR: Final = 10
"""The pause after a look at all buckets is at least this many times as long as the look took."""
LONGEST_PAUSE: Final = 0.5
"""The longest pause after a pass over the buckets."""
JOIN_PAUSE: Final = 0.03
"""The pause until the process has joined: clients wait for that, and it takes several passes."""
GROWN_PAUSE: Final = 0.03
"""The least time between two uses of larger parts: with 100 processes, some part grows with each record."""
FREED_PAUSE: Final = 0.1
"""The least time between two looks at the limits because a process has stopped using one. Clients may come
and go all the time, so these looks may only double the work.
"""
REPORTS_AT_MOST: Final = 8
"""The most reports of one pass over the buckets. Together they have some 4,000 buckets."""
BUCKETS_AT_A_TIME: Final = 64
"""The buckets between two looks at the clock, which SLICE_SECONDS needs."""
SLICE_SECONDS: Final = 0.001
"""After this long, the event loop gets a turn."""
FAILED_SECONDS: Final = 5.0
"""An internal error counts as over when there was none for this long. A pass without an error proves little,
because it may have had nothing to report.
"""
FAILURES_LOGGED: Final = 10
"""The most different errors that are logged. Further ones are only counted."""
DUPLICATE_SECONDS: Final = 30.0
"""For how long two live processes may have one name: while one replaces the other."""


class LimitSharing:
    """Reports the use of the live buckets, and gives them their parts."""

    def __init__(
        self,
        instance: str,
        engines: QuotaEngines,
        shares_log: SharesLog,
        time: Callable[[], float],
    ) -> None:
        """`instance`: this process's name; `time`: the clock of the quotas."""
        self.shares_log: Final = shares_log
        self.joined: Final = asyncio.Event()
        """Set when the other processes know this one, or until_joined() has waited for JOIN_SECONDS."""
        self.failures = 0
        """How often run() failed."""
        self._failure = ""
        """Why run() has failed recently; empty if it has not."""
        self._failed_at = 0.0
        self._logged: Final[set[str]] = set()
        """The errors that were logged."""
        self._instance: Final = instance
        self._name: Final = f"{instance}/{uuid4().hex[:8]}"
        self._engines: Final = engines
        self._time: Final = time
        self._sharing = Sharing(self._name)
        self._joining_since = time()
        """When this process read the first record of a live process."""
        self._uses: Final = LocalUses()
        self._applied = 0
        """The parts by the records below this offset are in use."""
        self._reported_at = 0.0
        """When this process last wrote a report."""
        self._has_parts = False
        """Whether the others have known this process: its limits have parts since."""
        self._left = False
        """Whether this process has told the others that it stops. A further report would have it join again.
        """
        self._alone_at = time()
        """When no other live process had this one's name."""
        self._grown: Final = asyncio.Event()
        """Set when larger parts apply, which clients wait for, or the live processes change."""
        self._took = 0.0
        """How long the last pass over the buckets took."""
        self._namesakes = 0
        """The live processes with this one's name; 0 if there is no other, or not for long."""
        self._degradation_logged = False
        """Whether the log says that sharing is degraded at present."""
        self._newer_logged = False
        """Whether the log names a process with a newer format that runs at present."""
        engines.begin_joining()

    @property
    def instances(self) -> int:
        """The live processes, this one included."""
        return max(self._sharing.instances, 1)

    @property
    def instance(self) -> str:
        """The name of this instance; a worker has its own."""
        return self._instance

    def ages(self) -> dict[str, float]:
        """The seconds since the last report of each live process, by its name."""
        return self._sharing.ages()

    def hot_keys(self) -> list[str]:
        """The keys of the hot buckets; the one that was reported last comes first."""
        return self._sharing.hot_keys()

    def shares(self, key: str) -> tuple[float, dict[str, float]] | None:
        """The limit of a hot bucket, and the share of each live process; None if it is cold."""
        return self._sharing.shares(key)

    @property
    def lag_seconds(self) -> float:
        """The age of what is known of the other processes."""
        return self._sharing.lag_seconds

    @property
    def degraded(self) -> bool:
        """Whether this process does not share: the topic is unavailable, or run() fails."""
        return self._sharing.degraded or bool(self.shares_log.problem or self._failure)

    @property
    def problem(self) -> str:
        """Why clients are not served yet; empty if they are."""
        if self.joined.is_set():
            return ""
        return f"joining: {self.shares_log.problem or 'the other processes do not know this one yet'}"

    def warnings(self) -> list[str]:
        """What is wrong while clients are served."""
        warnings = []
        if self._failure:
            warnings.append(
                f"this process uses at most an equal part of each limit: internal error: {self._failure}"
            )
        elif self.degraded and self.joined.is_set():
            why = self.shares_log.problem or f"no report for {self.lag_seconds:.0f} s"
            warnings.append(f"this process {self._what_it_uses()} of each limit: {why}")
        newer = self._sharing.newer()
        if newer:
            warnings.append(
                f"this process uses at most an equal part of each limit: {newer[0]} writes a newer format, "
                f"as {len(newer)} of {self.instances} processes do; upgrade this proxy"
            )
        if self._namesakes:
            warnings.append(
                f"{self._namesakes} live processes have the instance name {self._instance}, which does not "
                "affect limits; set sharing.instance to a different name for each"
            )
        if self.shares_log.skipped.warning:
            warnings.append(self.shares_log.skipped.warning)
        return warnings

    def _what_it_uses(self) -> str:
        """What this process uses of the limits while sharing is degraded."""
        if self._sharing.instances > 0 and not self._sharing.joined:
            return "uses only its reserve"
        return "keeps its part" if self._has_parts else "uses the whole"

    async def follow(self) -> None:
        """Follow the log of reports; never returns."""
        await self.shares_log.run(self._see, self._begin_anew)

    async def run(self) -> None:
        """Report and divide; never returns, whatever fails."""
        while True:
            pause = LONGEST_PAUSE
            try:
                pause = await self._divide()
            except Exception as error:  # noqa: BLE001 - any error counts, and none ends sharing
                self._fail(error)
            else:
                if self._time() - self._failed_at > FAILED_SECONDS:
                    self._failure = ""
            self._engines.review_every(REVIEW_SECONDS if self._parts_may_grow() else UNLIMITED)
            if self._sharing.joined and not self._failure:
                self._has_parts = True
                self.joined.set()
            if self.joined.is_set() and not self._has_parts and self._sharing.instances == 0:
                self._engines.use_whole(self._time())
            self._look_for_namesakes()
            self._log_newer()
            self._log_degradation()
            await self._pause(pause if self.joined.is_set() else min(pause, JOIN_PAUSE))

    async def _pause(self, seconds: float) -> None:
        """Wait for this time, and meanwhile use larger parts as soon as they apply.

        If a process joins or stops, or stops using a limit that others wait for, the next pass begins
        earlier: until all have reported that they have read this, clients of a process that joins wait, and
        nobody uses the parts of one that stops.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        earliest = clock() + max(self._took * PAUSE_FACTOR, GROWN_PAUSE)
        freed_at = max(earliest, clock() + FREED_PAUSE)
        self._use_grown()
        while clock() + GROWN_PAUSE < until and not self._sharing.joined_or_left:
            await asyncio.sleep(GROWN_PAUSE)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._grown.wait()
            self._use_grown()
            if self._sharing.freed:
                until = min(until, freed_at)
        if self._sharing.joined_or_left:
            until = min(until, earliest)
        await asyncio.sleep(until - clock())

    def _use_grown(self) -> None:
        """Use the larger parts that apply since the last look at the buckets."""
        self._grown.clear()
        sharing, now = self._sharing, self._time()
        if not sharing.grown or self._failure or not self._knows_its_parts():
            return
        sharing.grown = False
        try:
            # The process may have been suspended.
            sharing.wake(now)
            self._uses.divide(sharing, now)
        except Exception as error:  # noqa: BLE001 - as in run()
            self._fail(error)

    async def _divide(self) -> float:
        """Look at all live buckets, give them their parts, and report; return how long to pause."""
        sharing, uses = self._sharing, self._uses
        sharing.joined_or_left = sharing.freed = False
        read_to, divide = sharing.read_to, self._knows_its_parts()
        began = self._time()
        took = 0.0
        sharing.wake(began)
        stalled = sharing.stalled
        uses.begin(began)
        if divide:
            self._engines.share_by(sharing)
        for node_id, quota in self._engines.active():
            buckets = quota.shared_buckets(self._time())
            for first in range(0, len(buckets), BUCKETS_AT_A_TIME):
                now = self._time()
                if now - began > SLICE_SECONDS:
                    took += now - began
                    await asyncio.sleep(0)
                    began = now = self._time()
                    sharing.wake(now)
                    if sharing is not self._sharing or sharing.stalled > stalled:
                        return 0.0
                    if now - self._reported_at > LONGEST_PAUSE:
                        self._report([], now, self._applied)
                uses.look(node_id, buckets[first : first + BUCKETS_AT_A_TIME], sharing, now, divide)
        self._applied = read_to
        now = self._time()
        self._report(uses.end(), now, read_to)
        took += self._time() - began
        self._took = took
        return min(max(REPORT_SECONDS - took, took * PAUSE_FACTOR), LONGEST_PAUSE)

    def _knows_its_parts(self) -> bool:
        """Whether the others know this process, or know nothing of it although it reads what they write: then
        they use the whole limits, and it uses only its reserve.
        """
        if self._sharing.joined:
            return True
        return self._sharing.instances > 0 and self._time() - self._joining_since > JOIN_SECONDS

    def _parts_may_grow(self) -> bool:
        """Whether this process shares, or uses only its reserve: all but one that has the whole limits."""
        return self._sharing.instances > (1 if self._sharing.joined else 0)

    def _report(self, uses: list[LocalUse], now: float, applied: int) -> None:
        """Report what is due; where nothing can be written, all of it stays due."""
        if self._left or not self.shares_log.writable:
            self._sharing.wake(now)
            return
        for _ in range(REPORTS_AT_MOST):
            report = self._sharing.report(uses, now, applied=applied)
            if report is None:
                return
            self._reported_at = now
            self.shares_log.append(report)
            if not self._sharing.more:
                return

    def _fail(self, error: Exception) -> None:
        """A process that cannot divide uses at most an equal part of each limit."""
        self.failures += 1
        failure = f"{type(error).__name__}: {error}"
        if failure not in self._logged and len(self._logged) < FAILURES_LOGGED:
            self._logged.add(failure)
            log.error(
                "sharing: internal error; this process uses an equal part of each limit", exc_info=error
            )
        self._failure = failure
        self._failed_at = self._time()
        with suppress(Exception):
            now = self._time()
            hold(self._engines.shared_buckets(now), 1.0 / self.instances, now)

    async def until_joined(self) -> None:
        """Wait until the other processes know this one, at most JOIN_SECONDS."""
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                await self.joined.wait()
        except TimeoutError:
            if not self.joined.is_set():
                log.warning(
                    "sharing: serving clients, although the others do not know this process after %.0f s: %s",
                    JOIN_SECONDS,
                    self.shares_log.problem or "it has read none of its own reports",
                )
            self.joined.set()

    def _look_for_namesakes(self) -> None:
        now = self._time()
        found = sum(name.rpartition("/")[0] == self._instance for name in self._sharing.names())
        if found < 2:
            self._alone_at = now
            self._namesakes = 0
        elif now - self._alone_at > DUPLICATE_SECONDS:
            if not self._namesakes:
                log.warning(
                    "sharing: %d live processes have the instance name %s, which does not affect limits; set "
                    "sharing.instance to a different name for each",
                    found,
                    self._instance,
                )
            self._namesakes = found

    def _log_newer(self) -> None:
        """Log once that processes write a newer format."""
        newer = self._sharing.newer()
        if newer and not self._newer_logged:
            log.warning(
                "sharing: %s writes a newer format; this process uses at most an equal part of each limit; "
                "upgrade this proxy",
                newer[0],
            )
        self._newer_logged = bool(newer)

    def _log_degradation(self) -> None:
        """Log once that no reports arrive, unless the log has the reason, and once that sharing works again.

        If a broker hangs or is killed, the clients of the topic retry, and may have no error for seconds. A
        process that has stalled has read nothing yet.
        """
        if not self.degraded:
            if self._degradation_logged:
                log.info("sharing: no longer degraded; %d live processes share limits", self.instances)
            self._degradation_logged = False
        elif not self._degradation_logged and self.joined.is_set() and not self._sharing.stalled:
            self._degradation_logged = True
            if not (self.shares_log.problem or self._failure):
                log.warning(
                    "sharing: no report has arrived for %.0f s; this process %s of each limit",
                    self.lag_seconds,
                    self._what_it_uses(),
                )

    def _see(self, report: Report, offset: int, timestamp_ms: int) -> None:
        if self._sharing.instances == 0:
            self._joining_since = self._time()
        self._sharing.see(report, offset, timestamp_ms)
        sharing = self._sharing
        if sharing.grown or sharing.joined_or_left or sharing.freed:
            self._grown.set()

    def _begin_anew(self) -> None:
        self._sharing = Sharing(self._name, self._sharing.reported, self._sharing.seen_at)
        self._applied = 0

    async def leave(self) -> None:
        """Tell the others that this process stops; it reports nothing any more."""
        self._left = True
        report = self._sharing.report([], self._time(), leaving=True)
        if report is not None:
            self.shares_log.append(report)
        await self.shares_log.close()
