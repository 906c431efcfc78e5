"""ThrottleLog: logs replication throttles under which replicas never get in sync."""

import logging
from collections.abc import Callable
from typing import Final

from proxy.quota.kinds.replication.state import ReplicationState
from proxy.tasks import every
from proxy.telemetry.replication import endless

log = logging.getLogger(__name__)
CHECK_SECONDS: Final = 2.0
"""The rates that decide are averages over several seconds; checking more often finds nothing new."""
LOG_EVERY_SECONDS: Final = 60.0
"""For each broker and role: a throttle stays too low until an operator raises it."""


class ThrottleLog:
    """Logs one warning a minute for each throttle that is too low."""

    def __init__(self, state: Callable[[], ReplicationState | None], time: Callable[[], float]) -> None:
        """`state` gives None while there is no replication quota; `time` is the clock of the quotas."""
        self._state: Final = state
        self._time: Final = time
        self._logged_at: Final[dict[tuple[str, int], float]] = {}

    async def run(self) -> None:
        """Check until cancelled."""
        await every(CHECK_SECONDS, self.check)

    def check(self) -> None:
        """Log what is due."""
        state = self._state()
        if state is None:
            return
        now = self._time()
        for side, warning in endless(state, now).items():
            if now - self._logged_at.get(side, float("-inf")) >= LOG_EVERY_SECONDS:
                self._logged_at[side] = now
                log.warning("%s", warning)
