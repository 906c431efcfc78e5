"""Authentication: observes a client's logins at its broker (KIP-43, KIP-152, KIP-368), and names the client.

The name in force is the one that the broker accepted last. Until the broker accepts a login, and after it
rejects one, the name does not change. While a message of a login awaits its response, no further request is
read, so that requests sent along with the right credentials are counted as the user's.

SaslHandshake names a mechanism. After version 1 the mechanism's messages are SaslAuthenticate requests; after
version 0 each is a bare frame, and `raw` is set until that login is complete.

A login that the broker accepts and that names nobody (UNREADABLE) is rejected, unless the configuration has a
principal for such logins: the client would be free of its own user's quotas.
"""

from typing import Final, final

from proxy.relay.close_reasons import NO_PRINCIPAL, NOT_A_BROKER
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Client, Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.login.sasl import (
    MECHANISMS,
    UNREADABLE,
    agreed,
    claimed,
    name_of,
    readable,
    single_message,
    why_unreadable,
)
from proxy.wire.api_keys import API_VERSIONS, END, api_name
from proxy.wire.apis.api import RequestHeader
from proxy.wire.apis.sasl_apis import SASL_AUTHENTICATE, SASL_HANDSHAKE, authentication_failed
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.error_codes import SASL_AUTHENTICATION_FAILED
from proxy.wire.errors import Malformed, UnsupportedVersion
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader

NO_ERROR: Final = 0
UNSUPPORTED_MECHANISM: Final = 33
EVERYBODY: Final[frozenset[str]] = frozenset()
OTHER: Final = "other"
"""The mechanism in metrics if it is not one of Kafka's own."""
BEFORE_LOGIN: Final = frozenset([API_VERSIONS, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key])
"""The requests that brokers serve before the login (SaslServerAuthenticator)."""
MIN_REQUEST_BYTES: Final = 10
"""The smallest request header: api_key, api_version, correlation_id and the length of client_id."""

NO_LOGIN: Final = 0
"""No handshake is in force: the broker rejects messages of a login."""
FIRST_MESSAGE: Final = 1
"""The broker has accepted a handshake; the client's next message is the mechanism's first."""
LATER_MESSAGE: Final = 2
"""The mechanism has more messages."""


@final
class Login:
    """How the clients of a listener log in, by the configuration."""

    def __init__(self, oauth_claim: str, unreadable: str, only: frozenset[str] = EVERYBODY) -> None:
        self.oauth_claim: Final = oauth_claim
        self.unreadable: Final = unreadable
        """The principal of logins without a readable name. Empty: such logins are rejected."""
        self.only: Final = only
        """The users that are served. Empty: all users."""


@final
class Authentication:
    """The logins of one connection. Raises ProtocolError if a message does not parse."""

    def __init__(
        self, login: Login, traffic: Traffic, in_flight: InFlight, address: str, errors: BrokerErrors
    ) -> None:
        self.raw = False
        """Whether the client's next frame is a bare message."""
        self.done = False
        """Whether the broker has accepted a login."""
        self.principal = ""
        """The client's principal since then."""
        self.rejection = ""
        """Why the connection must end, although the broker has accepted the login."""
        self.rejection_reason = ""
        """The same reason as one of the close reasons."""
        self._login: Final = login
        self._traffic: Final = traffic
        self._in_flight: Final = in_flight
        self._address: Final = address
        self._errors: Final = errors
        self._waiting: Exchange | None = None
        """The message of a login that awaits its response."""
        self._mechanism = ""
        self._claimed = UNREADABLE
        """The name that the login claims, until the broker has accepted or rejected it."""
        self._stage = NO_LOGIN
        self._asked_mechanism = ""
        self._asked_raw = False
        self._handshake = False
        self._version = 0

    # Messages of the client

    def takes(self, frame: Frame, header: RequestHeader, reader: Reader, client: Client) -> bool:
        """Return whether a request is part of a login; `reader` is behind the client id in its header."""
        if header.api_key == SASL_HANDSHAKE.key:
            api = SASL_HANDSHAKE
        elif header.api_key == SASL_AUTHENTICATE.key:
            api = SASL_AUTHENTICATE
        else:
            return False
        if header.api_version > api.newest:
            raise UnsupportedVersion(f"{api.name} v{header.api_version} is not supported")
        self._await(Exchange(header.correlation_id, client, api_key=header.api_key), frame)
        self._handshake = api is SASL_HANDSHAKE
        if self._handshake:
            self._asked_mechanism = reader.string(False)
            self._asked_raw = header.api_version == 0
            return True
        self._version = header.api_version
        flexible = self._version >= api.flexible_from
        if flexible:
            reader.skip_tags()
        self._note(_bytes(reader, flexible))
        return True

    def takes_bare(self, frame: Frame, client: Client) -> bool:
        """Return whether a frame is a bare message."""
        if not self.raw:
            return False
        token = b"".join(frame.pieces)[LENGTH_SIZE:]
        if self._is_request(token):
            self.raw = False
            return False
        self._await(Exchange(0, client, api_key=SASL_AUTHENTICATE.key), frame)
        self._handshake = False
        self._note(token)
        return True

    def _is_request(self, token: bytes) -> bool:
        """Whether a frame is a request, which ends the bare messages of a mechanism that the proxy cannot
        read. Such a mechanism has any number of messages, but at least one.
        """
        if readable(self._mechanism) or self._stage == FIRST_MESSAGE or len(token) < MIN_REQUEST_BYTES:
            return False
        # A bare message of a mechanism that the proxy does not read starts with a larger number than any API
        # key: GSSAPI's with 0x60, or with 0x05 followed by 0x04.
        return (token[0] << 8) | token[1] < END

    def _await(self, exchange: Exchange, frame: Frame) -> None:
        if not frame.complete:
            raise Malformed(f"a message of a login has {frame.size} bytes")
        self._waiting = exchange
        self._in_flight.add_login(exchange)

    def _note(self, token: bytes) -> None:
        if self._stage == NO_LOGIN:
            self._claimed = UNREADABLE
        elif self._stage == FIRST_MESSAGE or single_message(self._mechanism):
            self._claimed = claimed(self._mechanism, token)

    # Responses of the broker

    def takes_response(self, frame: Frame) -> bool:
        """Return whether a frame is the response to a message of a login."""
        waiting = self._waiting
        if waiting is None or waiting is not self._in_flight.first:
            return False
        if not frame.complete:
            raise Malformed(f"the response to a message of a login has {frame.size} bytes")
        self._waiting = None
        self._in_flight.take_login_response()
        client = waiting.client
        client.traffic.bytes_out += frame.size
        if client.usage is not None:
            client.usage.count_out(waiting.api_key, frame.size)
        if self.raw:
            self._in_flight.take_bare_response(waiting)
            self._judge(NO_ERROR, b"".join(frame.pieces)[LENGTH_SIZE:])
            if self.rejection:
                # If the messages are bare, brokers reject a login without a message.
                frame.pieces.clear()
            return True
        reader = Reader(frame.pieces, LENGTH_SIZE)
        self._in_flight.take_response(reader.i32())
        if self._handshake:
            self._take_handshake(reader.i16())
            return True
        flexible = self._version >= SASL_AUTHENTICATE.flexible_from
        if flexible:
            reader.skip_tags()
        error_code = reader.i16()
        reader.skip_string(flexible)
        self._judge(error_code, _bytes(reader, flexible))
        if self.rejection:
            frame.pieces[:] = [authentication_failed(waiting.correlation_id, self._version, self.rejection)]
        return True

    def _take_handshake(self, error_code: int) -> None:
        self._errors.count(SASL_HANDSHAKE.key, error_code)
        if error_code == NO_ERROR:
            self._mechanism = self._asked_mechanism
            self._stage = FIRST_MESSAGE
            self._claimed = UNREADABLE
            self.raw = self._asked_raw
        elif error_code == UNSUPPORTED_MECHANISM:
            self._traffic.count_failed_login(_known(self._asked_mechanism), self._address)

    def _judge(self, error_code: int, token: bytes) -> None:
        """Take the broker's response to a message of a login."""
        self._errors.count(SASL_AUTHENTICATE.key, error_code)
        if error_code == NO_ERROR:
            if not agreed(self._mechanism, token):
                self._stage = LATER_MESSAGE
                return
            name = name_of(self._mechanism, self._claimed, self._login.oauth_claim)
            self._accept(name or self._login.unreadable)
            self.raw = self.raw and not readable(self._mechanism)
        elif error_code == SASL_AUTHENTICATION_FAILED:
            self._traffic.count_failed_login(_known(self._mechanism), self._address)
        self._stage = NO_LOGIN
        self._claimed = UNREADABLE

    def _accept(self, principal: str) -> None:
        """Take a login that the broker has accepted. `principal` is empty if the login has no readable name,
        and the configuration has no principal for such logins.
        """
        only = self._login.only
        if not principal:
            why = why_unreadable(self._mechanism, self._login.oauth_claim)
            self.rejection = f"the login names no user: {why} (see principal.unreadable)"
            self.rejection_reason = NO_PRINCIPAL
        elif only and principal not in only:
            self.rejection = f"{principal} has logged in, which is none of principal.brokers"
            self.rejection_reason = NOT_A_BROKER
        else:
            self.principal = principal
            self.done = True

    def end(self) -> None:
        """Count a failed login if a bare message awaits its response: a broker rejects it by closing the
        connection.
        """
        if self.raw and self._waiting is not None:
            self._traffic.count_failed_login(_known(self._mechanism), self._address)


def check_before_login(header: RequestHeader) -> None:
    """Raise Malformed for a request that no broker serves before the client has logged in. Nobody knows whose
    it is, and quotas of topics would charge it to all who may write.
    """
    if header.api_key not in BEFORE_LOGIN:
        raise Malformed(
            f"{api_name(header.api_key)} before the login: set the client's security.protocol to "
            "SASL_PLAINTEXT or SASL_SSL"
        )


def _bytes(reader: Reader, flexible: bool) -> bytes:
    size = reader.bytes_length(flexible)
    return reader.peek(size) if size > 0 else b""


def _known(mechanism: str) -> str:
    return mechanism if mechanism in MECHANISMS else OTHER
