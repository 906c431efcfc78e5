"""Interception: which requests of a connection the proxy answers itself, and how they are handed out."""

from typing import Final, final

from proxy.quota.engine import QuotaEngine
from proxy.relay.exchange import Client, Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.intercepted import Intercepted, max_request_bytes
from proxy.relay.output import RelayOutput
from proxy.relay.service_clock import ServiceClock
from proxy.wire.apis.api import Api, RequestHeader
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame
from proxy.wire.views import RequestView


def covers(engine: QuotaEngine, api_keys: frozenset[int], api_key: int) -> bool:
    """Whether the proxy answers requests of this API: one of `api_keys`, whatever the quotas, or one that a
    quota adds.
    """
    return api_key in api_keys or engine.intercepts(api_key)


def covers_client(engine: QuotaEngine, api_key: int, client: Client, now: float) -> bool:
    """Whether the proxy answers this client's requests of this API because of a quota."""
    return engine.intercepts_limited(api_key) and engine.intercepts_from(api_key, client, now)


@final
class Interception:
    """The intercepted requests of one connection. Made for each use: idle connections stay small."""

    __slots__ = ("_clock", "_in_flight", "_output")

    def __init__(self, in_flight: InFlight, output: RelayOutput, clock: ServiceClock) -> None:
        self._in_flight: Final = in_flight
        self._output: Final = output
        self._clock: Final = clock

    def hand_out(
        self,
        frame: Frame,
        header: RequestHeader,
        client: Client,
        api: Api | None,
        request: RequestView | None,
    ) -> None:
        """Give a request to the shell, which answers it. A request with an `api` may be forwarded after all;
        `request` is the view that the quotas charge.

        Raises Malformed if the request is larger than any that the proxy answers.
        """
        most = max_request_bytes(header.api_key)
        if not frame.complete or frame.size > most:
            raise Malformed(
                f"a request of API {header.api_key} has {frame.size} bytes; "
                f"the proxy answers it itself and takes {most} at most"
            )
        exchange = Exchange(
            header.correlation_id, client, api_key=header.api_key, api=api, request=request, local=True
        )
        self._output.intercept(Intercepted(exchange, header, _payload(frame)))
        self._in_flight.add(exchange)

    def ask(self, exchange: Exchange, frame: bytes, now: float) -> None:
        """Send the broker a request of the proxy's own, for an intercepted one."""
        exchange.sent_at = self._clock.at(now)
        self._output.send_to_broker([frame])
        self._in_flight.ask(exchange)

    def forward(self, exchange: Exchange, frame: bytes, now: float) -> None:
        """Forward an intercepted request after all."""
        exchange.sent_at = self._clock.at(now)
        self._in_flight.forward(exchange)
        self._output.send_to_broker([frame])


def _payload(frame: Frame) -> bytes:
    """Header and body of a frame, copied once: it may have megabytes."""
    first, rest = frame.pieces[0], frame.pieces[1:]
    if len(first) < LENGTH_SIZE:
        return b"".join(frame.pieces)[LENGTH_SIZE:]
    return b"".join([first[LENGTH_SIZE:], *rest])
