"""CallbackLog: logs the failures of `quotas.callback`, which the rings must not log themselves."""

import logging
import math
from collections.abc import Callable
from typing import Final

from proxy.quota.limits.limit_source import LimitSource
from proxy.tasks import every

log = logging.getLogger(__name__)
CHECK_SECONDS: Final = 1.0
"""How often check() looks for a failure."""
LOG_EVERY_SECONDS: Final = 10.0
"""A callback that fails for one client mostly fails for all: one line in this time is enough."""


class CallbackLog:
    """Takes failures from the source that is in force at the time."""

    def __init__(self, source: Callable[[], LimitSource | None], time: Callable[[], float]) -> None:
        self._source: Final = source
        self._time: Final = time
        self._logged_at = -math.inf

    async def run(self) -> None:
        """Check until cancelled."""
        await every(CHECK_SECONDS, self.check)

    def check(self) -> None:
        """Log a failure, if there is one and the last line is old enough."""
        now = self._time()
        source = self._source()
        if source is None or now - self._logged_at < LOG_EVERY_SECONDS:
            return
        failure = source.take_failure()
        if failure:
            self._logged_at = now
            log.error("%s", failure)
