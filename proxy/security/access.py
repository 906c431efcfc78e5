"""Access: how the proxy's own connections get in at the brokers of a cluster: TLS, and a login by SASL."""

import ssl
from typing import Any, Final, Protocol, TypeVar

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import ScramAuthenticator
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from proxy.errors import KeyPath, SettingsError, UpstreamUnavailable
from proxy.security.secrets import SecretMissing, read_secret
from proxy.security.settings import UpstreamSasl, UpstreamTls
from proxy.security.tls import TlsFiles, client_tls

Response = TypeVar("Response", bound=ResponsePayload)


class Asker(Protocol):
    """A connection to a broker."""

    async def ask(self, request: RequestPayload, answer: type[Response]) -> Response: ...


class Access:
    """Plaintext without a login where both settings are None. Raises SettingsError for files that will not
    do.
    """

    def __init__(
        self, tls: UpstreamTls | None = None, sasl: UpstreamSasl | None = None, at: KeyPath = ()
    ) -> None:
        """`at` is where upstream stands in the configuration file."""
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

    async def log_in(self, broker: Asker) -> None:
        """Log in on a new connection. Raises UpstreamUnavailable where the broker rejects, and what ask()
        does.
        """
        sasl = self._sasl
        if sasl is None:
            return
        handshake = await broker.ask(SaslHandshakeRequest(mechanism=sasl.mechanism), SaslHandshakeResponse)
        if handshake.error_code != ErrorCode.none:
            offered = ", ".join(handshake.mechanisms)
            raise UpstreamUnavailable(f"the broker does not take {sasl.mechanism}; it takes {offered}")
        try:
            await self._exchange(broker, sasl)
        except SecretMissing as error:
            raise UpstreamUnavailable(str(error)) from error

    async def _exchange(self, broker: Asker, sasl: UpstreamSasl) -> None:
        if sasl.mechanism == "PLAIN":
            await _send(broker, sasl, f"\0{sasl.username}\0{_secret(sasl)}".encode())
        elif sasl.mechanism == "OAUTHBEARER":
            answer = await _send(broker, sasl, f"n,,\x01auth=Bearer {_secret(sasl)}\x01\x01".encode())
            if answer:
                # Error code 0 with a reason: the rejection comes when this has been acknowledged (RFC 7628).
                await _send(broker, sasl, b"\x01")
                raise UpstreamUnavailable("the broker rejects the proxy's token")
        else:
            scram = ScramAuthenticator(
                loop=None,
                sasl_plain_username=sasl.username,
                sasl_plain_password=_secret(sasl),
                sasl_mechanism=sasl.mechanism,
            )
            step = scram._step(None)
            try:
                while step is not None:
                    step = scram._step(await _send(broker, sasl, step[0]))
            except (ValueError, KeyError) as error:
                raise UpstreamUnavailable(
                    f"the broker's part of {sasl.mechanism} does not prove that it knows the proxy's password"
                ) from error

    def for_aiokafka(self) -> dict[str, Any]:
        """What aiokafka's clients take for the same."""
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
            return {**settings, "sasl_oauth_token_provider": _Token(sasl)}
        return {**settings, "sasl_plain_username": sasl.username, "sasl_plain_password": _secret(sasl)}


class _Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, sasl: UpstreamSasl) -> None:
        self._sasl: Final = sasl

    async def token(self) -> str:
        return _secret(self._sasl)


def _secret(sasl: UpstreamSasl) -> str:
    """The password or token, as it is now. Raises SecretMissing."""
    return read_secret(sasl.password_file or sasl.token_file, sasl.password_env)


async def _send(broker: Asker, sasl: UpstreamSasl, token: bytes) -> bytes:
    """A step of the login. Raises UpstreamUnavailable where the broker rejects."""
    answer = await broker.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    if answer.error_code != ErrorCode.none:
        who = "" if sasl.username is None else f" of {sasl.username}"
        why = answer.error_message or answer.error_code.name
        raise UpstreamUnavailable(f"the broker rejects the proxy's login{who} by {sasl.mechanism}: {why}")
    return bytes(answer.auth_bytes)


PLAINTEXT: Final = Access()
