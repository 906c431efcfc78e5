"""Access: where brokers may be, and TLS and the SASL login of the proxy's own connections to them."""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from proxy.errors import KeyPath, SettingsError, UpstreamUnavailable
from proxy.security.broker_hosts import ANY_HOST, BrokerHosts
from proxy.security.secrets import SecretMissing, read_secret
from proxy.security.settings import UpstreamSasl, UpstreamTls
from proxy.security.tls import TlsFiles, client_tls

if TYPE_CHECKING:
    from kio.static.protocol import RequestPayload, ResponsePayload

Response = TypeVar("Response", bound="ResponsePayload")


class Asker(Protocol):
    """A connection to a broker."""

    async def ask(self, request: "RequestPayload", response: type[Response]) -> Response:
        """Send a request and return its response, of this type. Raises OSError or EOFError if the connection
        ends.
        """


class NewConnection(Asker, Protocol):
    """A connection on which the proxy logs in."""

    session_seconds: float
    """For how long after the login the broker serves the connection (KIP-368); 0.0 for ever."""


class Access:
    """Connects and logs in to brokers as the settings say; without settings, over plaintext and without a
    login. Raises SettingsError for files that cannot be used.
    """

    def __init__(
        self,
        tls: UpstreamTls | None = None,
        sasl: UpstreamSasl | None = None,
        at: KeyPath = (),
        hosts: BrokerHosts = ANY_HOST,
    ) -> None:
        """`at` is the key of `upstream` in the configuration file."""
        self.hosts: Final = hosts
        self.tls: Final[TlsFiles | None] = None if tls is None else client_tls(tls, (*at, "tls"))
        self._sasl: Final = sasl
        if sasl is not None:
            try:
                _secret(sasl)
            except SecretMissing as error:
                name = "token_file" if sasl.password_file is None else "password_file"
                key = "password_env" if error.env else name
                raise SettingsError(str(error), (*at, "sasl", key)) from error

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """The context for a new connection; None for plaintext."""
        return None if self.tls is None else self.tls.context

    async def connect(
        self, protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> asyncio.Transport:
        """Connect to a broker, without logging in. Raises OSError (see BrokerHosts.connect())."""
        return await self.hosts.connect(protocol, host, port, self.ssl_context)

    async def log_in(self, broker: NewConnection) -> None:
        """Log in on a new connection. Raises UpstreamUnavailable if the broker rejects the login, and what
        ask() raises.
        """
        sasl = self._sasl
        if sasl is None:
            return
        # Imported here: most proxies connect to brokers without a login.
        from kio.schema.errors import ErrorCode
        from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
        from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

        handshake = await broker.ask(SaslHandshakeRequest(mechanism=sasl.mechanism), SaslHandshakeResponse)
        if handshake.error_code != ErrorCode.none:
            offered = ", ".join(handshake.mechanisms)
            raise UpstreamUnavailable(f"the broker does not support {sasl.mechanism}; it supports {offered}")
        try:
            await self._exchange(broker, sasl)
        except SecretMissing as error:
            raise UpstreamUnavailable(str(error)) from error

    async def _exchange(self, broker: NewConnection, sasl: UpstreamSasl) -> None:
        """Send the mechanism's messages. Raises UpstreamUnavailable, SecretMissing, and what ask() raises."""
        if sasl.mechanism == "PLAIN":
            await _send(broker, sasl, f"\0{sasl.username}\0{_secret(sasl)}".encode())
        elif sasl.mechanism == "OAUTHBEARER":
            reason = await _send(broker, sasl, f"n,,\x01auth=Bearer {_secret(sasl)}\x01\x01".encode())
            if reason:
                # The broker sends the reason with error code 0, and rejects after this reply (RFC 7628).
                await _send(broker, sasl, b"\x01")
                raise UpstreamUnavailable("the broker rejects the proxy's token")
        else:
            from proxy.security.aiokafka_sasl import scram

            # aiokafka's authenticator has no public method for a single message.
            login = scram(sasl.username, _secret(sasl), sasl.mechanism)
            step = login._step(None)
            try:
                while step is not None:
                    step = login._step(await _send(broker, sasl, step[0]))
            except (ValueError, KeyError) as error:
                raise UpstreamUnavailable(
                    f"the broker does not prove that it knows the proxy's password ({sasl.mechanism})"
                ) from error

    def for_aiokafka(self) -> dict[str, Any]:
        """The same access, as keyword arguments for aiokafka's clients."""
        sasl = self._sasl
        over_tls = self.tls is not None
        if sasl is None:
            protocol = "SSL" if over_tls else "PLAINTEXT"
            return {"security_protocol": protocol, "ssl_context": self.ssl_context}
        settings = {
            "security_protocol": "SASL_SSL" if over_tls else "SASL_PLAINTEXT",
            "ssl_context": self.ssl_context,
            "sasl_mechanism": sasl.mechanism,
        }
        if sasl.mechanism == "OAUTHBEARER":
            from proxy.security.aiokafka_sasl import TokenProvider

            return {**settings, "sasl_oauth_token_provider": TokenProvider(partial(_secret, sasl))}
        if sasl.mechanism != "PLAIN":
            import proxy.security.aiokafka_sasl  # noqa: F401 - it bounds the iterations of SCRAM
        return {**settings, "sasl_plain_username": sasl.username, "sasl_plain_password": _secret(sasl)}


def _secret(sasl: UpstreamSasl) -> str:
    """The current password or token. Raises SecretMissing."""
    return read_secret(sasl.password_file or sasl.token_file, sasl.password_env)


async def _send(broker: NewConnection, sasl: UpstreamSasl, token: bytes) -> bytes:
    """Send one message of the login and return the broker's. Raises UpstreamUnavailable if it rejects."""
    from kio.schema.errors import ErrorCode
    from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
    from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse

    response = await broker.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    if response.error_code != ErrorCode.none:
        who = "" if sasl.username is None else f" of {sasl.username}"
        why = response.error_message or response.error_code.name
        raise UpstreamUnavailable(f"the broker rejects the proxy's login{who} by {sasl.mechanism}: {why}")
    broker.session_seconds = response.session_lifetime.total_seconds()
    return bytes(response.auth_bytes)


PLAINTEXT: Final = Access()
