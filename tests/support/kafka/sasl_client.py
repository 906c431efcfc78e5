"""SASL logins message by message, including messages that ordinary clients do not send."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from tests.support.kafka.raw_client import RawClient
from tests.support.messages.kio_messages import request_type
from tests.support.messages.logins import AUTHENTICATE, HANDSHAKE

NONCE: Final = "fyko+d2lbbFgONRv9qkxdawL"
NextMessage = Callable[[bytes], bytes]
"""Makes the client's next message from the broker's message."""


def shake_hands(client: RawClient, mechanism: str, version: int = 1) -> ErrorCode:
    """Send a SaslHandshake."""
    code: ErrorCode = client.ask(request_type(HANDSHAKE, version)(mechanism=mechanism)).error_code
    return code


def authenticate(client: RawClient, message: bytes, version: int = 2) -> Any:
    """Send a message of a login; return the response."""
    return client.ask(request_type(AUTHENTICATE, version)(auth_bytes=message))


def log_in(client: RawClient, mechanism: str, messages: Sequence[bytes | NextMessage]) -> Any:
    """Log in; return the last response. The broker must respond to the earlier messages with error code 0."""
    assert shake_hands(client, mechanism) is ErrorCode.none
    response = None
    for message in messages:
        if response is not None:
            assert response.error_code is ErrorCode.none
        sent = (
            message
            if isinstance(message, bytes)
            else message(b"" if response is None else response.auth_bytes)
        )
        response = authenticate(client, sent)
    return response


def scram_final(first_bare: str, password: str, hash_name: str = "sha256") -> NextMessage:
    """Return a function that makes SCRAM's last message.

    `first_bare`: the client's first message as the broker reads it, without the GS2 header and reserved
    attributes.
    """

    def final_message(server_first: bytes) -> bytes:
        nonce, salt, iterations = (part[2:] for part in server_first.decode().split(","))
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), base64.b64decode(salt), int(iterations))
        client_key = hmac.digest(salted, b"Client Key", hash_name)
        final = f"c=biws,r={nonce}"
        signed = f"{first_bare},{server_first.decode()},{final}".encode()
        stored_key = hashlib.new(hash_name, client_key).digest()
        signature = hmac.digest(stored_key, signed, hash_name)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    return final_message


def scram(
    user: str, password: str, *, extension: str = "", nonce: str = NONCE, reserved: str = ""
) -> list[Any]:
    """Return the client's messages of a SCRAM-SHA-256 login."""
    bare = f"n={user},r={nonce}{extension}"
    return [f"n,,{reserved}{bare}".encode(), scram_final(bare, password)]


def bearer(token: str, *extensions: str) -> bytes:
    """Return the client's first message of an OAUTHBEARER login."""
    pairs = (f"auth=Bearer {token}", *extensions)
    return ("n,,\x01" + "".join(f"{pair}\x01" for pair in pairs) + "\x01").encode()
