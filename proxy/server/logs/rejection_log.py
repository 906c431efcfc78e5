"""RejectionLog: logs what quotas reject of Produce requests, and what brokers reject of the rest."""

import logging
from collections.abc import Callable
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds import broker_bytes_in
from proxy.quota.kinds.broker_bytes_in import SHARE, BrokerBytesIn, ErrorBytes
from proxy.quota.rejection.rejections import RejectedTopic
from proxy.server.logs.log_limit import LogLimit
from proxy.tasks import every

log = logging.getLogger(__name__)
CHECK_SECONDS: Final = 1.0
"""A rejection is logged a second later at most, close to the producer's own error."""
LOG_EVERY_SECONDS: Final = 30.0
"""For each broker, topic and reason: producers retry several times a second. LogLimit bounds the lines of all
topics together; a topic that it skips is logged by a later check."""

BROKERS_OWN: Final = "rejected by brokers"
"""The cause of lines about them in LogLimit."""

RejectionKey = tuple[int, str, str]
"""Broker, topic, reason: a quota key, or the name of an error."""

NEVER_LOGGED: Final = (float("-inf"), 0, 0)


class RejectionLog:
    """Logs one line per broker, topic and reason, with what was rejected since the previous line."""

    def __init__(self, engines: QuotaEngines, time: Callable[[], float]) -> None:
        self._engines: Final = engines
        self._time: Final = time
        self._lines: Final = LogLimit(log, "rejected Produce requests")
        self._logged: Final[dict[RejectionKey, tuple[float, int, int]]] = {}
        """The time of the last line, and the requests or partitions, and bytes, until then."""

    async def run(self) -> None:
        """Check until cancelled."""
        await every(CHECK_SECONDS, self.check)

    def check(self) -> None:
        """Log what is due."""
        now = self._time()
        self._check_rejections(now)
        self._check_errors(now)

    def _check_errors(self, now: float) -> None:
        """Log what brokers with a broker quota have rejected themselves."""
        due: list[tuple[float, RejectionKey, ErrorBytes]] = []
        for quota in self._engines.of_kind(broker_bytes_in.KIND):
            if not isinstance(quota, BrokerBytesIn):
                continue
            for (topic, error_code), errors in quota.errors.items():
                key = (quota.node_id, topic, _error_name(error_code))
                at, partitions, _ = self._logged.get(key, NEVER_LOGGED)
                if errors.partitions > partitions and now - at >= LOG_EVERY_SECONDS:
                    due.append((at, key, errors))
        for _, key, errors in sorted(due, key=lambda topic: topic[0]):
            node_id, topic, error = key
            if self._lines.allows(BROKERS_OWN, now):
                _, partitions, size = self._logged.get(key, NEVER_LOGGED)
                log.warning(
                    "broker %d, topic %s: the broker itself rejected %d bytes of records in %d partitions of "
                    "Produce requests with %s; they do not count in the rates of the broker and the topic",
                    node_id,
                    topic,
                    errors.bytes - size,
                    errors.partitions - partitions,
                    error,
                )
                self._logged[key] = (now, errors.partitions, errors.bytes)

    def _check_rejections(self, now: float) -> None:
        due: list[tuple[float, RejectionKey, RejectedTopic]] = []
        for node_id, engine in self._engines.engines().items():
            for (topic, reason), rejected in engine.rejections.topics.items():
                key = (node_id, topic, reason)
                at, requests, _ = self._logged.get(key, NEVER_LOGGED)
                if rejected.requests > requests and now - at >= LOG_EVERY_SECONDS:
                    due.append((at, key, rejected))
        # The longest unlogged first, so that no topic is skipped for good.
        for _, key, rejected in sorted(due, key=lambda topic: topic[0]):
            if self._lines.allows(key[2], now):
                _, requests, size = self._logged.get(key, NEVER_LOGGED)
                self._log(key, rejected, rejected.requests - requests, rejected.bytes - size, now)
                self._logged[key] = (now, rejected.requests, rejected.bytes)

    def _log(self, key: RejectionKey, rejected: RejectedTopic, requests: int, size: int, now: float) -> None:
        node_id, topic, reason = key
        log.warning(
            "broker %d, topic %s: rejected %d bytes in %d Produce requests (%s), last of client id %r "
            "(user %s): rate %.0f B/s, threshold %s%s",
            node_id,
            topic,
            size,
            requests,
            reason,
            rejected.client_id,
            rejected.principal,
            rejected.rate,
            _threshold(rejected.limit, rejected.whole_limit),
            self._total(node_id, now) if reason == SHARE else "",
            extra={
                "broker": node_id,
                "topic": topic,
                "user": rejected.principal,
                "client_id": rejected.client_id,
            },
        )

    def _total(self, node_id: int, now: float) -> str:
        """The rate and the threshold of the whole broker."""
        for quota in self._engines.of_kind(broker_bytes_in.KIND):
            if isinstance(quota, BrokerBytesIn) and quota.node_id == node_id and quota.active:
                total = quota.live()[0]
                threshold = _threshold(total.limit, total.whole_limit)
                return f"; whole broker: rate {total.measure(now):.0f} B/s, threshold {threshold}"
        return ""


def _threshold(limit: float, whole: float) -> str:
    """The threshold that a rate of this process was compared with."""
    part = "" if limit == whole else f", this process's part of {whole:.0f} B/s"
    return f"{limit:.0f} B/s{part}"


def _error_name(error_code: int) -> str:
    """Kafka's name of an error, or its number if kio does not know it."""
    try:
        return ErrorCode(error_code).name.upper()
    except ValueError:
        return f"error {error_code}"
