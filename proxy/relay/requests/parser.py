"""RequestParser: parses a request into the view that quotas and edits use."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.engine import QuotaEngine
from proxy.relay.close_reasons import NOT_A_BROKER, PRODUCE_REJECTED, RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Client
from proxy.relay.settings import RelaySettings
from proxy.wire.api_keys import BOUNDED_OTHERWISE, CHANGES_OF_CLIENTS, FETCH, MAY_BE_LARGE, PRODUCE, api_name
from proxy.wire.apis.api import Api, RequestHeader
from proxy.wire.cursor import HEAD, Cursor
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed, Short
from proxy.wire.fetch.rewrite import SessionRead
from proxy.wire.fetch.session_sizes import SessionSizes
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader, i16_at
from proxy.wire.spare_items import SpareItems
from proxy.wire.views import RequestView

LARGE: Final = 8
"""MAY_BE_LARGE may have this many times limits.max_list_request_bytes."""
CHECKED_BYTES: Final = 64 << 10
"""A client's Produce request of more bytes is read to its end. Otherwise it could have millions of unknown
tagged fields, two bytes each, and a broker makes an object of each: 50 MB of them exhaust a heap of 512 MB.
One that is cut through is read in every version, for the hash codes of its topics
(proxy.wire.keyed.keyed_arrays).
"""
PROTECTED: Final = "a large Produce request writes to a topic of the proxy"


@final
class RequestParser:
    """The parser of one connection. Raises ProtocolError if a request does not parse."""

    def __init__(
        self,
        engine: QuotaEngine,
        traffic: Traffic,
        settings: RelaySettings,
        spare_items: SpareItems,
    ) -> None:
        self._settings: Final = settings
        self.body_at = 0
        """The offset of the body in the frame of the last Produce request."""
        self._engine: Final = engine
        self._traffic: Final = traffic
        self._spare_items: Final = spare_items
        apis = settings.apis
        self._apis: Final = apis.read_between_brokers if settings.between_brokers else apis.read
        self._session_sizes: SessionSizes | None = None
        """The sizes of the connection's fetch sessions; None while no quota charges time."""

    def api(self, header: RequestHeader) -> Api | None:
        """The API of a request; None if the proxy does not read it."""
        if header.api_key >= len(self._apis):
            return None
        api = self._apis[header.api_key]
        if (
            api is None
            or not self._settings.between_brokers
            or api.oldest <= header.api_version <= api.newest
        ):
            return api
        self._traffic.unread_fetches += 1
        return None

    def unread(self, frame: Frame, header: RequestHeader, client: Client) -> RequestView | None:
        """Return the view of a request whose body is not read; None if no quota needs it.

        Raises RelayError if the client must be a broker, and no broker sends such a request.
        """
        if self._settings.between_brokers and header.api_key in CHANGES_OF_CLIENTS:
            raise RelayError(NOT_A_BROKER, f"brokers do not send {api_name(header.api_key)}")
        if not self._engine.covers(header.api_key):
            return None
        size = frame.size - LENGTH_SIZE
        client_id = client.client_id
        return RequestView(
            header.api_key,
            header.api_version,
            header.correlation_id,
            client_id,
            size,
            cursor=self._settings.cursor,
        )

    def read(
        self, frame: Frame, reader: Reader, header: RequestHeader, client: Client, api: Api
    ) -> RequestView:
        """Return the view of a request, as far as it has arrived; `reader` is behind its client id.

        Raises RelayError if a request that is cut through writes to a protected topic.
        """
        version = header.api_version
        view = RequestView(
            header.api_key,
            version,
            header.correlation_id,
            client.client_id,
            frame.size - LENGTH_SIZE,
            flexible=version >= api.flexible_from,
            want_items=self._traffic.want_items or self._engine.wants_items(header.api_key),
            cursor=self._next_cursor(frame),
        )
        view.partial = not frame.complete
        if view.flexible:
            reader.skip_tags()
        if header.api_key == PRODUCE:
            view.rejectable = self._engine.rejects
            view.protected_topics = self._settings.protected
            self.body_at = reader.offset
            large = frame.size > CHECKED_BYTES and (view.flexible or not frame.complete)
            if large and not self._settings.between_brokers:
                view.want_items = True
            if frame.complete:
                self._spare_items.lend(view)
        try:
            api.read_request(reader, view)
        except Short:
            if frame.complete or view.cursor.phase == HEAD:
                raise
        if header.api_key == PRODUCE and frame.complete:
            self._spare_items.settle(view)
        elif header.api_key == FETCH:
            self._count_partitions(frame, reader, view)
        return self._with_items(frame, api, view) if view.names_protected else view

    def _count_partitions(self, frame: Frame, reader: Reader, view: RequestView) -> None:
        """Note for how many partitions the broker works on a fetch; `reader` is behind its bounds."""
        if not self._engine.charges_time:
            self._session_sizes = None
            return
        sizes = self._session_sizes
        if sizes is None:
            sizes = self._session_sizes = SessionSizes()
        if frame.complete:
            view.partitions = sizes.read(reader, view.api_version, view.size, True)
        else:
            mark = reader.mark()
            view.partitions = sizes.read(reader, view.api_version, view.size, False)
            reader.back_to(mark)  # the rest of the request is forwarded from there
        opening = sizes.opening
        if opening is not None:
            view.new_session = opening
            view.fetch_rewrite = SessionRead(view.api_version)

    def _next_cursor(self, frame: Frame) -> Cursor:
        """The cursor for a request: a new one if it is cut through, and outlives this call."""
        if not frame.complete:
            return Cursor()
        cursor = self._settings.cursor
        cursor.start()
        return cursor

    def _with_items(self, frame: Frame, api: Api, view: RequestView) -> RequestView:
        """Return the view of a Produce request to a protected topic, read again with its items.

        Raises RelayError if the request is cut through: the proxy cannot answer a part of it, and a broker
        does not respond to a request without its end.
        """
        if view.partial:
            raise RelayError(PRODUCE_REJECTED, PROTECTED)
        if view.want_items:
            return view
        again = RequestView(
            view.api_key,
            view.api_version,
            view.correlation_id,
            view.client_id,
            view.size,
            flexible=view.flexible,
            want_items=True,
        )
        again.protected_topics = view.protected_topics
        again.rejectable = view.rejectable
        api.read_request(Reader(frame.pieces, self.body_at), again)
        return again

    def read_on(self, cut: CutThrough, api: Api, view: RequestView, complete: bool) -> None:
        """Read the next part of a request that is cut through; `complete`: it is the last part.

        Raises RelayError if the request writes to a protected topic.
        """
        if view.cursor.done:
            return
        try:
            api.read_request(cut.reader, view)
        except Short:
            if complete:
                raise
        if view.names_protected:
            raise RelayError(PRODUCE_REJECTED, PROTECTED)


def api_key_of(frame: Frame) -> native:
    """Return the api_key of a request, or of its first part."""
    if len(frame.chunk) > 0:
        return i16_at(frame.chunk, frame.start + LENGTH_SIZE) if frame.size >= LENGTH_SIZE + 2 else -1
    return Reader(frame.pieces, LENGTH_SIZE).i16()


def check_list(frame: Frame, max_bytes: int) -> None:
    """Raise Malformed for a request of more than `max_bytes`, which has begun to arrive, if it may not be so
    large.
    """
    api_key = api_key_of(frame)
    if api_key in BOUNDED_OTHERWISE or (api_key in MAY_BE_LARGE and frame.size <= LARGE * max_bytes):
        return
    raise Malformed(
        f"{api_name(api_key)} has {frame.size} bytes; limits.max_list_request_bytes is {max_bytes}"
    )


def unread_body(frame: Frame, header: RequestHeader, client: Client, api: Api) -> RequestView:
    """Return the view of a request whose body is not read."""
    version = header.api_version
    return RequestView(
        header.api_key,
        version,
        header.correlation_id,
        client.client_id,
        frame.size - LENGTH_SIZE,
        flexible=version >= api.flexible_from,
    )
