"""FirstWait: the first requests of a client on a connection wait until a debt is paid that is there already.

request_percentage charges a request when the broker has responded, and then mutes the connection. Without
this wait, a client in debt would have a further request on credit on each new connection. A connection whose
client id changes counts as new, because another quota may then apply.

In debt, these requests do not wait for it, and the request behind them counts as the first, too:

    Produce with acks=0             It uses no request time.
    SaslHandshake, SaslAuthenticate The proxy may not know the user before the login.
    ApiVersions                     It waits for no longer than a response mutes its client: libraries give up
                                    if they get no response to it for seconds (kafka-python after two).
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.measure.debt import PAID_SECONDS, Debt
from proxy.relay.exchange import Client
from proxy.relay.requests.debt_wait import REVIEW_SECONDS
from proxy.wire.api_keys import API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from proxy.wire.apis.api import RequestHeader
from proxy.wire.apis.api_00_produce import FLEXIBLE_FROM, NEWEST, acks_at
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader


@final
class FirstWait:
    """The waits of one connection's clients, one after the other."""

    def __init__(self, engine: QuotaEngine) -> None:
        self._engine: Final = engine
        self._debt: Debt | None = None
        self.frame: Frame | None = None
        """The request that waits, or the first part of it; None if none does."""
        self.wake_at = 0.0
        """When over() is due, if a request waits."""
        self.last = True
        """Whether the request about which begins() was asked last is the last that may wait."""

    def begins(self, frame: Frame, header: RequestHeader, body_at: int, client: Client, now: float) -> bool:
        """Whether a request waits. `body_at`: the offset behind its client id."""
        bucket = self._engine.owed(client, now)
        seconds = 0.0 if bucket is None else bucket.wait(now)
        self.last = True
        if bucket is None or seconds <= PAID_SECONDS:
            return False
        if bucket.windowed:
            seconds = min(seconds, bucket.rule.window.total_seconds)  # Kafka's rate has forgotten it then
        if _goes_on(frame, header, body_at):
            self.last = False
            return False
        if header.api_key == API_VERSIONS:
            self.last = False
            seconds = min(seconds, bucket.rule.max_throttle_seconds)
        until = now + seconds
        bucket.count_throttle(seconds, 1, until)
        if client.usage is not None:
            client.usage.count_throttle(header.api_key, bucket.quota, seconds, 1)
        self._debt = Debt(bucket, client, until)
        self.frame = frame
        self.wake_at = min(until, now + REVIEW_SECONDS)
        return True

    def over(self, now: float) -> bool:
        """Return whether the request may go on, under the limits in force."""
        debt = self._debt
        until = now if debt is None else self._engine.review(debt, now)
        if until <= now + PAID_SECONDS:
            self._debt = None
            return True
        self.wake_at = min(until, now + REVIEW_SECONDS)
        return False

    def take(self) -> Frame:
        """Return the request that has waited."""
        frame = self.frame
        assert frame is not None, "a request waits"
        self.frame = None
        return frame


def _goes_on(frame: Frame, header: RequestHeader, body_at: int) -> bool:
    """Whether a request never waits. Raises ProtocolError if a Produce request has arrived without acks."""
    if header.api_key == SASL_HANDSHAKE or header.api_key == SASL_AUTHENTICATE:
        return True
    if header.api_key != PRODUCE or header.api_version > NEWEST:
        return False
    reader = Reader(frame.pieces, body_at)
    flexible = header.api_version >= FLEXIBLE_FROM
    if flexible:
        reader.skip_tags()
    at = acks_at(frame.pieces, reader.offset, header.api_version, flexible)
    return Reader(frame.pieces, at).i16() == 0
