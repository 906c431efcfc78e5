"""TrafficWatch: derives warnings from the counters of a listener."""

import logging
from typing import Final, Protocol

from proxy.config.settings import Listener
from proxy.quota.identity import ANONYMOUS
from proxy.relay.counters.traffic import Traffic
from proxy.wire.apis.sasl_apis import SASL_HANDSHAKE

log = logging.getLogger(__name__)
LOG_UNREAD_EVERY_SECONDS: Final = 60.0
"""Brokers fetch several times a second; one line a minute shows that it goes on."""


class TrafficWatch(Protocol):
    """Looks at the counters of one listener every second."""

    def check(self, now: float) -> None:
        """Log what is due."""

    def warnings(self) -> list[str]:
        """The problems that do not keep clients from being served."""


class UnidentifiedLogins:
    """Warns of clients that log in although the listener takes no principal from logins."""

    def __init__(self, listener: Listener, traffic: Traffic) -> None:
        self._listener: Final = listener
        self._traffic: Final = traffic
        self._logged = False

    def check(self, now: float) -> None:
        if not self._logged:
            for warning in self.warnings():
                self._logged = True
                log.warning("%s", warning)

    def warnings(self) -> list[str]:
        if self._listener.principal is not None or not self._traffic.requests[SASL_HANDSHAKE.key]:
            return []
        return [
            f"{self._listener.name}: clients log in, but quotas see all of them as {ANONYMOUS}; "
            "set principal: {from: sasl} on the listener"
        ]


class UnreadFetches:
    """Warns of fetches between brokers whose version the proxy cannot read."""

    def __init__(self, listener: str, traffic: Traffic) -> None:
        self._listener: Final = listener
        self._traffic: Final = traffic
        self._logged = 0
        self._logged_at = float("-inf")

    def check(self, now: float) -> None:
        unread = self._traffic.unread_fetches
        if unread > self._logged and now - self._logged_at >= LOG_UNREAD_EVERY_SECONDS:
            log.warning(
                "%s: %d fetches were of versions that this proxy cannot read; no quota applies to them",
                self._listener,
                unread - self._logged,
            )
            self._logged, self._logged_at = unread, now

    def warnings(self) -> list[str]:
        return []
