"""HandledRequest: an intercepted request for its handler, which asks the client's broker and answers."""

import asyncio
from typing import Final, Generic, TypeVar, final

from proxy.quota.verdict import ALLOW, Verdict
from proxy.relay.close_reasons import CLIENT_CLOSED, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.server.connection.broker.question import BrokerQuestion
from proxy.server.connection.hang_up import hung_up
from proxy.server.connection.relay_session import RelaySession

LOOK_SECONDS: Final = 0.02
"""How often to look whether the client's socket has taken a response, or the broker has responded."""
C = TypeVar("C")
"""The connection, as for RelaySession."""


@final
class HandledRequest(Generic[C]):
    """A request of a connection. After the end of the connection, ask() raises an error, and answer() and
    forward() do nothing.
    """

    __slots__ = ("_session", "request")

    def __init__(self, session: RelaySession[C], request: Intercepted) -> None:
        self._session: Final = session
        self.request: Final = request

    async def ask(self, frame: bytes) -> bytes:
        """Ask the broker something on the client's own connection; return its response, header and body.

        One question at a time. Is cancelled when the connection ends, and raises RelayError when it has.
        """
        session = self._session
        relay = session.relay
        if relay is None or session.over:
            raise RelayError(CLIENT_CLOSED, "the client is gone")
        if session.question is None:
            session.question = BrokerQuestion(asyncio.get_running_loop())
        response = session.question.ask()
        session.act_on(relay, relay.ask_broker(self.request.exchange, frame, session.event_time(relay)))
        return await response

    async def earlier_done(self) -> None:
        """Return when the broker has responded to the earlier requests of the connection. Raises RelayError
        if the connection is over.
        """
        session = self._session
        exchange = self.request.exchange
        while (relay := session.relay) is not None and not session.over:
            if relay.is_next(exchange):
                return
            await asyncio.sleep(LOOK_SECONDS)
        raise RelayError(CLIENT_CLOSED, "the client is gone")

    def gone(self) -> bool:
        """Whether the client has closed the connection; nothing is read from it meanwhile."""
        client = self._session.client
        return self._session.over or client is None or hung_up(client)

    async def taken(self) -> None:
        """Return when the client's socket has taken the response, or is closed."""
        while self._session.keeps_response(self.request.exchange):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)

    def answer(self, frame: bytes, throttle: Verdict = ALLOW, delay_seconds: float = 0.0) -> None:
        """Answer the request; see Relay.answer()."""
        session = self._session
        relay = session.relay
        if relay is None or session.over:
            return
        try:
            output = relay.answer(
                self.request.exchange, frame, session.event_time(relay), throttle, delay_seconds
            )
        except RelayError as error:
            session.fail_in_call(relay, error)
            return
        session.act_on(relay, output)

    def forward(self, frame: bytes) -> None:
        """Forward the request; see Relay.forward()."""
        session = self._session
        relay = session.relay
        if relay is None or session.over:
            return
        try:
            output = relay.forward(self.request.exchange, frame, session.event_time(relay))
        except RelayError as error:
            session.fail_in_call(relay, error)
            return
        session.act_on(relay, output)

    def charge_work(self, seconds: float) -> None:
        """Charge the proxy's own work on the request, also if its client is gone; see Relay.charge_work()."""
        session = self._session
        if session.relay is not None:
            session.relay.charge_work(self.request.exchange, seconds, session.time())
