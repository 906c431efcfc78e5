"""LimitSharing: keeps this process's parts of the limits up to date."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from proxy.quota.engines import QuotaEngines
from proxy.quota.sharing.local_uses import LocalUses
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import REPORT_SECONDS, Sharing

if TYPE_CHECKING:
    from proxy.store.shares_topic import SharesTopic

log = logging.getLogger(__name__)
JOIN_SECONDS: Final = 5.0
"""For how long clients wait at startup until the other processes know this one."""
PAUSE_FACTOR: Final = 10
"""The pause after a look at all buckets is at least this many times as long as the look took."""
LONGEST_PAUSE: Final = 0.5
"""A process that does not report for a second has stalled for the others."""


class LimitSharing:
    """Reports the use of the live buckets, and gives them their parts."""

    def __init__(
        self, instance: str, engines: QuotaEngines, topic: "SharesTopic", time: Callable[[], float]
    ) -> None:
        """`instance`: this process's name; `time`: the clock of the quotas."""
        self.topic: Final = topic
        self.joined: Final = asyncio.Event()
        """Set when the other processes know this one, or the topic is unavailable for JOIN_SECONDS."""
        self._name: Final = f"{instance}/{uuid4().hex[:8]}"
        self._engines: Final = engines
        self._time: Final = time
        self._sharing = Sharing(self._name)
        self._uses: Final = LocalUses()

    @property
    def instances(self) -> int:
        """The live processes, this one included."""
        return max(self._sharing.instances, 1)

    @property
    def lag_seconds(self) -> float:
        """The age of what is known of the other processes."""
        return self._sharing.lag_seconds

    @property
    def degraded(self) -> bool:
        """Whether the topic is unavailable."""
        return self._sharing.degraded or bool(self.topic.problem)

    async def follow(self) -> None:
        """Follow the topic; never returns."""
        await self.topic.run(self._see, self._begin_anew)

    async def run(self) -> None:
        """Report and divide; never returns."""
        started = self._time()
        while True:
            began = self._time()
            report = self._sharing.report(self._uses.look(self._engines.live(), began), began)
            if self._sharing.joined:
                self._uses.apply(self._sharing, began)
                self.joined.set()
            elif began - started > JOIN_SECONDS and not self.joined.is_set():
                log.warning("sharing: clients are served, and no other process knows of this one yet")
                self.joined.set()
            took = self._time() - began
            if report is not None:
                self.topic.append(report)
            await asyncio.sleep(min(max(REPORT_SECONDS - took, took * PAUSE_FACTOR), LONGEST_PAUSE))

    def _see(self, report: Report, offset: int, timestamp_ms: int) -> None:
        self._sharing.see(report, offset, timestamp_ms)

    def _begin_anew(self) -> None:
        self._sharing = Sharing(self._name)

    async def leave(self) -> None:
        """Tell the others that this process stops."""
        report = self._sharing.report([], self._time(), leaving=True)
        if report is not None:
            self.topic.append(report)
        await self.topic.close()
