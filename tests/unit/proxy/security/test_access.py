"""The proxy's own logins, to a broker whose responses the test sets."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiokafka.conn import ScramAuthenticator
from aiokafka.errors import AuthenticationFailedError
from kio.schema.errors import ErrorCode

from proxy.errors import SettingsError, UpstreamUnavailable
from proxy.security.access import PLAINTEXT, Access
from proxy.security.settings import UpstreamSasl, UpstreamTls
from tests.support.process.certificates import Authority

SECRET = "s3cret"
REJECTED = ErrorCode.sasl_authentication_failed


class Broker:
    """Sends these responses to the messages of a login, in order."""

    session_seconds = 0.0
    lifetime = timedelta(0)

    def __init__(self, *responses: bytes | ErrorCode, handshake: ErrorCode = ErrorCode.none) -> None:
        self.mechanisms: list[str] = []
        self.tokens: list[bytes] = []
        self._responses = list(responses)
        self._handshake = handshake

    async def ask(self, request: Any, response: Any) -> Any:
        if request.__api_key__ == 17:
            self.mechanisms.append(request.mechanism)
            return response(error_code=self._handshake, mechanisms=("GSSAPI", "OWN"))
        self.tokens.append(bytes(request.auth_bytes))
        said = self._responses.pop(0)
        code = said if isinstance(said, ErrorCode) else ErrorCode.none
        message = None if code is ErrorCode.none else "Go away"
        token = b"" if isinstance(said, ErrorCode) else said
        return response(
            error_code=code, error_message=message, auth_bytes=token, session_lifetime=self.lifetime
        )


@pytest.fixture
def secret(tmp_path: Path) -> str:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    return str(file)


def log_in(broker: Broker, **sasl: Any) -> None:
    asyncio.run(Access(None, UpstreamSasl(**sasl)).log_in(broker))


def test_plain(secret: str) -> None:
    broker = Broker(b"")
    log_in(broker, mechanism="PLAIN", username="proxy", password_file=secret)
    assert (broker.mechanisms, broker.tokens) == (["PLAIN"], [f"\0proxy\0{SECRET}".encode()])


def test_the_length_of_the_session_is_noted(secret: str) -> None:
    broker = Broker(b"")
    broker.lifetime = timedelta(hours=1)
    log_in(broker, mechanism="PLAIN", username="proxy", password_file=secret)
    assert broker.session_seconds == 3600.0


def test_password_is_read_at_each_login(secret: str) -> None:
    access = Access(None, UpstreamSasl(mechanism="PLAIN", username="proxy", password_file=secret))
    Path(secret).write_text("another")
    broker = Broker(b"")
    asyncio.run(access.log_in(broker))
    assert broker.tokens == [b"\0proxy\0another"]
    Path(secret).unlink()
    with pytest.raises(UpstreamUnavailable):
        asyncio.run(access.log_in(Broker(b"")))


def test_rejection_has_the_brokers_reason_and_no_secret(secret: str) -> None:
    with pytest.raises(UpstreamUnavailable) as caught:
        log_in(Broker(REJECTED), mechanism="PLAIN", username="proxy", password_file=secret)
    for named in ("proxy", "PLAIN", "Go away"):
        assert named in str(caught.value)
    assert SECRET not in str(caught.value)


def test_unsupported_mechanism_names_the_supported_ones(secret: str) -> None:
    broker = Broker(handshake=ErrorCode.unsupported_sasl_mechanism)
    with pytest.raises(UpstreamUnavailable, match="GSSAPI, OWN"):
        log_in(broker, mechanism="PLAIN", username="proxy", password_file=secret)
    assert broker.tokens == []


def test_oauthbearer(secret: str) -> None:
    broker = Broker(b"")
    log_in(broker, mechanism="OAUTHBEARER", token_file=secret)
    assert broker.tokens == [f"n,,\x01auth=Bearer {SECRET}\x01\x01".encode()]


def test_token_rejection_is_acknowledged(secret: str) -> None:
    broker = Broker(b'{"status":"invalid_token"}', REJECTED)
    with pytest.raises(UpstreamUnavailable, match="Go away"):
        log_in(broker, mechanism="OAUTHBEARER", token_file=secret)
    assert broker.tokens[1] == b"\x01"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("first", [b"r=other,s=c2FsdA==,i=4096", b"malformed", b""])
def test_scram_rejects_a_broker_that_does_not_know_the_password(
    secret: str, mechanism: str, first: bytes
) -> None:
    with pytest.raises(UpstreamUnavailable, match=mechanism):
        log_in(Broker(first), mechanism=mechanism, username="proxy", password_file=secret)


class ExpensiveBroker(Broker):
    """Asks for iterations that would take a quarter of an hour."""

    async def ask(self, request: Any, response: Any) -> Any:
        if request.__api_key__ != 17:
            nonce = bytes(request.auth_bytes).rpartition(b"r=")[2]
            self._responses = [b"r=" + nonce + b"more,s=c2FsdA==,i=2147483647"]
        return await super().ask(request, response)


def test_scram_does_not_work_for_a_broker_without_end(secret: str) -> None:
    with pytest.raises(UpstreamUnavailable, match="SCRAM"):
        log_in(ExpensiveBroker(), mechanism="SCRAM-SHA-256", username="proxy", password_file=secret)
    with pytest.raises(AuthenticationFailedError):
        ScramAuthenticator(
            loop=None,
            sasl_plain_username="proxy",
            sasl_plain_password=SECRET,
            sasl_mechanism="SCRAM-SHA-512",
        ).create_salted_password(b"salt", 2147483647)


def test_scram_rejected(secret: str) -> None:
    broker = Broker(REJECTED)
    with pytest.raises(UpstreamUnavailable, match="Go away"):
        log_in(broker, mechanism="SCRAM-SHA-256", username="proxy", password_file=secret)
    assert broker.tokens[0].startswith(b"n,,n=proxy,r=")


def test_no_request_without_a_login() -> None:
    asyncio.run(PLAINTEXT.log_in(Broker()))
    assert PLAINTEXT.ssl_context is None


def test_missing_secret_is_rejected_by_its_key(tmp_path: Path) -> None:
    sasl = UpstreamSasl(mechanism="PLAIN", username="u", password_file=str(tmp_path / "no"))
    with pytest.raises(SettingsError) as caught:
        Access(None, sasl, ("upstream",))
    assert caught.value.key == ("upstream", "sasl", "password_file")


def test_arguments_for_aiokafka(tmp_path: Path, secret: str) -> None:
    tls = UpstreamTls(ca=Authority(tmp_path).ca)
    scram = UpstreamSasl(mechanism="SCRAM-SHA-512", username="proxy", password_file=secret)
    access = Access(tls, scram)
    assert access.for_aiokafka() == {
        "security_protocol": "SASL_SSL",
        "ssl_context": access.ssl_context,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "proxy",
        "sasl_plain_password": SECRET,
    }
    assert Access(tls).for_aiokafka()["security_protocol"] == "SSL"
    assert PLAINTEXT.for_aiokafka() == {"security_protocol": "PLAINTEXT", "ssl_context": None}
    bearer = Access(None, UpstreamSasl(mechanism="OAUTHBEARER", token_file=secret)).for_aiokafka()
    assert bearer["security_protocol"] == "SASL_PLAINTEXT"
    assert asyncio.run(bearer["sasl_oauth_token_provider"].token()) == SECRET
