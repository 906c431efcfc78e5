"""ProduceGate: removes the partitions that quotas reject from Produce requests.

The rest of the request is forwarded, and the client's response has all of its partitions. If every partition
is rejected, the relay answers the request itself, in its turn. A producer with acks=0 gets no responses: its
rejected batches are dropped, and its connection is closed soon after, as a broker does after an error.

A mute for a rejection begins when the relay has read everything that the client has sent. Otherwise each of
many requests in flight would wait for the mutes of all requests before it, and the client would time out.
"""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.rejection.rejections import RejectedItems
from proxy.relay.budgets.id_budget import fill_names
from proxy.relay.close_reasons import PRODUCE_REJECTED, UNKNOWN_TOPIC
from proxy.relay.exchange import Exchange, local_exchange
from proxy.relay.inflight import InFlight
from proxy.relay.requests.unnamed_topics import NO_TOPICS, TopicIds
from proxy.wire.api_keys import PRODUCE
from proxy.wire.apis.api_00_produce import acks_at
from proxy.wire.apis.batch_heads import BatchHeads
from proxy.wire.apis.rejected_partitions import Rejection, cut, local_response
from proxy.wire.edit import Edit, i16, insert
from proxy.wire.error_codes import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID
from proxy.wire.frames import Frame
from proxy.wire.protected_topics import MESSAGE, ProtectedTopics
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import UNKNOWN, Item, RequestView

UNANSWERED_SECONDS: Final = 1.0
"""Seconds until the connection of a producer without responses is closed."""
FULL_READ_BYTES: Final = 250_000
"""A read of this many bytes fills the buffer of the event loop (asyncio's 256 KiB, less with TLS; uvloop's
256,000 bytes), so the socket probably has more.
"""
REJECTED_MESSAGE: Final = "The quota of this partition is used up for now; send the batch again."


NONE: Final[list[int]] = []
"""A shared object that never changes."""


@final
class ProduceGate:
    """The gate of one connection."""

    def __init__(
        self,
        engine: QuotaEngine,
        in_flight: InFlight,
        names: TopicNames,
        protected: ProtectedTopics | None = None,
    ) -> None:
        self._engine: Final = engine
        self._in_flight: Final = in_flight
        self._names: Final = names
        self._protected: Final = protected
        self.closing = ""
        """Why the connection ends as soon as its client is no longer muted; empty if it continues."""
        self.closing_reason = PRODUCE_REJECTED
        self._mute: RejectedItems | None = None
        """The rejected partitions for which the client must be muted; None if there are none."""
        self._mute_who: Identity | None = None
        self._mute_since = 0.0
        """When the first rejection was made for which the client must be muted."""
        self._muted_until = 0.0
        """When the last mute for rejected partitions ends; 0.0 before the first."""

    @property
    def mutes(self) -> bool:
        """Whether the client is muted only for its rejected partitions."""
        return 0.0 < self._in_flight.muted_until == self._muted_until

    def reject(
        self,
        frame: Frame,
        exchange: Exchange,
        view: RequestView,
        body_at: int,
        now: float,
        unknown: TopicIds = NO_TOPICS,
        retries_throttling: bool = False,
    ) -> bool:
        """Remove the partitions that the quotas reject, and those of protected and `unknown` topics. Return
        whether none is left to be forwarded.

        The frame is complete, and its body begins at `body_at`. The view has the items. `retries_throttling`:
        whether the client is known to retry THROTTLING_QUOTA_EXCEEDED.
        """
        fill_names(self._names, view.items, exchange.client)
        denied = self._deny(view, unknown) if view.names_protected or len(unknown) > 0 else NONE
        heads = BatchHeads(frame.pieces, body_at)
        verdict = self._engine.reject(view, exchange.client, now, heads)
        if not verdict.items and not denied:
            return False
        places = sorted({*verdict.items, *denied})
        if verdict.throttle_seconds > 0.0:
            self._throttle(exchange, view, verdict, now)
        if view.acks == 0:
            self._close_soon(view, denied, len(places))
        error_code = self._engine.rejection_error(retries_throttling)
        messages = {error_code: REJECTED_MESSAGE, TOPIC_AUTHORIZATION_FAILED: MESSAGE}
        rejection = Rejection([view.items[place] for place in places], error_code, messages)
        exchange.rejection = rejection
        if len(places) < len(view.items):
            _take_out(frame, view, body_at, places, denied)
            return False
        if denied:
            self._charge(exchange, view, denied, now)
        if view.acks != 0:
            self._respond(exchange, view, rejection, now)
        return True

    def _close_soon(self, view: RequestView, denied: list[int], dropped: int) -> None:
        """End the connection of a producer with acks=0, which cannot be told of its `dropped` batches."""
        why = "is over a quota"
        if denied and view.items[denied[0]].error_code == UNKNOWN_TOPIC_ID:
            why = "names a topic by an id that the cluster does not have"
            self.closing_reason = UNKNOWN_TOPIC
        elif denied:
            why = "writes to a topic of the proxy"
        self.closing = f"a producer with acks=0 {why}: {dropped} batches were dropped"

    def delay_close(self, now: float) -> None:
        """Mute a client whose connection ends as soon as it is no longer muted."""
        self._in_flight.mute(now + UNANSWERED_SECONDS)

    def _throttle(self, exchange: Exchange, view: RequestView, verdict: RejectedItems, now: float) -> None:
        """Announce the wait for rejected partitions, and mute the client later: see all_read()."""
        # If a response has no throttle_time_ms, it is delayed by at most the time for which later requests
        # wait.
        told = verdict.mute_seconds if view.api_version == 0 else verdict.throttle_seconds
        exchange.throttle(now + told, now)
        mute = self._mute
        if mute is None:
            self._mute_since = now
        if mute is None or verdict.mute_seconds > mute.mute_seconds:
            self._mute = verdict
            self._mute_who = exchange.client

    def all_read(self, more_waits: bool, now: float) -> None:
        """Mute the client if that is due, because all of its bytes that have arrived have been read.

        `more_waits`: its socket probably has more. A client that sends without a pause is muted when it has
        sent for as long as the mute takes.
        """
        mute = self._mute
        who = self._mute_who
        if mute is None or who is None or (more_waits and now < self._mute_since + mute.mute_seconds):
            return
        self._mute = None
        self._muted_until = now + mute.mute_seconds
        self._in_flight.mute(self._muted_until)
        self._engine.rejections.count_mute(mute, who, now)

    def _deny(self, view: RequestView, unknown: TopicIds) -> list[int]:
        """Give the items of protected and unknown topics their errors; return their places."""
        protected = self._protected
        denied: list[int] = []
        for place, item in enumerate(view.items):
            error_code = 0
            if protected is not None and protected.has(item.topic, item.topic_id):
                error_code = TOPIC_AUTHORIZATION_FAILED
            elif not item.topic and item.topic_id in unknown:
                error_code = UNKNOWN_TOPIC_ID
            if error_code != 0:
                denied.append(place)
                view.items[place] = Item(
                    item.topic, item.topic_id, item.partition, item.size, item.head, error_code
                )
        return denied

    def _charge(self, exchange: Exchange, view: RequestView, denied: list[int], now: float) -> None:
        """Charge a request of which no partition is left, without the bytes that the quotas reject."""
        charged = frozenset(denied)
        for place, item in enumerate(view.items):
            if place not in charged:
                view.size -= item.size
        view.items = []
        view.items_size = UNKNOWN
        verdict = self._engine.admit(view, exchange.client, now)
        if verdict.throttle_seconds > 0.0:
            exchange.throttle(now + verdict.throttle_seconds, now)
            self._in_flight.throttle(verdict, exchange.client, now)

    def _respond(self, exchange: Exchange, view: RequestView, rejection: Rejection, now: float) -> None:
        """Answer a request that is not forwarded."""
        until = exchange.throttled_until
        response = local_response(view, rejection, self._in_flight.announced(until, now))
        local = local_exchange(exchange.correlation_id, exchange.client, PRODUCE, response)
        if view.api_version == 0:
            local.delayed_until = self._in_flight.delayed(until, now)
        local.throttled_until = until
        self._in_flight.count_throttle(exchange)
        self._in_flight.answer(local, view, len(rejection.items), now)


def await_silently(frame: Frame, exchange: Exchange, view: RequestView, body_at: int) -> None:
    """Request a response for a producer with acks=0, which does not get it: only the response tells quotas by
    topic which records the broker has appended.
    """
    at = acks_at(frame.pieces, body_at, view.api_version, view.flexible)
    insert(view.edits, Edit(at, at + 2, i16(1)))
    view.cursor.marked_edits += 1  # the edit stays when a cut-through request is read again from its mark
    view.acks = 1
    exchange.silent = True


def _take_out(frame: Frame, view: RequestView, body_at: int, places: list[int], denied: list[int]) -> None:
    """Cut partitions out of a request; `denied` are those that the client has no right to write."""
    denied_bytes = 0
    for place in denied:
        denied_bytes += view.items[place].size
    gone = frozenset(places)
    view.items = [item for place, item in enumerate(view.items) if place not in gone]
    view.items_size = UNKNOWN
    view.edits.extend(cut(frame.pieces, body_at, view.api_version, view.flexible, places))
    for edit in view.edits:
        view.size += edit.growth
    # As a broker does, charge the producer for records that it was not authorized to send.
    view.size += denied_bytes
