"""What aiokafka has of SASL: its side of a SCRAM login, and tokens that are read anew each time."""

import base64
import hashlib
import hmac
from typing import Any

import pytest

from proxy.security.aiokafka_sasl import TokenProvider, scram

SALT, ITERATIONS = b"salt", 4096


def server_says(mechanism: str, password: str, client_first: str, client_final: str) -> tuple[str, str]:
    """The messages of a server that knows the password (RFC 5802)."""
    name = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    nonce = client_first.rpartition("r=")[2] + "server"
    first = f"r={nonce},s={base64.b64encode(SALT).decode()},i={ITERATIONS}"
    salted = hashlib.pbkdf2_hmac(name, password.encode(), SALT, ITERATIONS)
    key = hmac.digest(salted, b"Server Key", name)
    without_proof = client_final.rpartition(",p=")[0]
    signed = ",".join([client_first.removeprefix("n,,"), first, without_proof])
    return first, "v=" + base64.b64encode(hmac.digest(key, signed.encode(), name)).decode()


def log_in(mechanism: str, knows: str) -> list[str]:
    """What a client with the password `secret` sends to a server with the password that it `knows`."""
    client: Any = scram("alice", "secret", mechanism)
    first = client.first_message()
    client.process_server_first_message(server_says(mechanism, knows, first, "")[0])
    final = client.final_message()
    client.process_server_final_message(server_says(mechanism, knows, first, final)[1])
    return [first, final]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_proves_the_password_of_both(mechanism: str) -> None:
    first, final = log_in(mechanism, "secret")
    assert first.startswith("n,,n=alice,r=")
    assert ",p=" in final
    assert "secret" not in first + final
    with pytest.raises(ValueError, match="signature"):
        log_in(mechanism, "another")


def test_each_login_has_a_nonce_of_its_own() -> None:
    one, other = (scram("alice", "secret", "SCRAM-SHA-256").first_message() for _ in range(2))
    assert one != other


async def test_a_token_is_read_each_time() -> None:
    tokens = iter(["first", "second"])
    provider = TokenProvider(lambda: next(tokens))
    assert [await provider.token(), await provider.token()] == ["first", "second"]
