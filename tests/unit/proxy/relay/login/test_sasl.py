import base64
import json

import pytest

from proxy.relay.login.sasl import UNREADABLE, agreed, name_in, readable


def jwt(claims: object) -> str:
    parts = [{"alg": "none"}, claims]
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )


def bearer(token: str, authzid: str = "") -> bytes:
    return f"n,{authzid},\x01auth=Bearer {token}\x01traceId=7\x01\x01".encode()


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (b"\0alice\0secret", "alice"),
        (b"alice\0alice\0secret", "alice"),
        ("\0müller 李\0s".encode(), "müller 李"),
        (b"alice\0secret", UNREADABLE),
        (b"\0alice\0sec\0ret", UNREADABLE),
        (b"", UNREADABLE),
    ],
)
def test_plain(token: bytes, name: str) -> None:
    assert name_in("PLAIN", token, "sub") == name


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(
    ("token", "name"),
    [
        (b"n,,n=alice,r=abc", "alice"),
        (b"n,a=alice,n=alice,r=abc", "alice"),
        (b"n,,n=a=2Cb=3Dc,r=abc", "a,b=c"),
        (b"n,,n=a=3D2C,r=abc", "a=2C"),
        (b"n,,n=id7,r=abc,tokenauth=true", UNREADABLE),
        (b"n,,r=abc", UNREADABLE),
        (b"", UNREADABLE),
    ],
)
def test_scram(mechanism: str, token: bytes, name: str) -> None:
    assert name_in(mechanism, token, "sub") == name


@pytest.mark.parametrize(
    ("token", "claim", "name"),
    [
        (bearer(jwt({"sub": "alice"}) + "."), "sub", "alice"),
        (bearer(jwt({"sub": "alice", "client": "c"}) + ".sig"), "client", "c"),
        (bearer(jwt({"sub": "alice"}) + ".", "a=alice"), "sub", "alice"),
        (bearer(jwt({"sub": "alice"}) + ".").replace(b"Bearer", b"bearer"), "sub", "alice"),
        (bearer(jwt({"sub": "mü?>~"}) + "."), "sub", "mü?>~"),
        (bearer(jwt({"sub": ["alice"]}) + "."), "sub", UNREADABLE),
        (bearer(jwt({"name": "alice"}) + "."), "sub", UNREADABLE),
        (bearer(jwt(["sub"]) + "."), "sub", UNREADABLE),
        (bearer("opaque"), "sub", UNREADABLE),
        (bearer("a.b.c"), "sub", UNREADABLE),
        (bearer("a.W1tb."), "sub", UNREADABLE),
        (b"\x01", "sub", UNREADABLE),
    ],
)
def test_oauthbearer(token: bytes, claim: str, name: str) -> None:
    assert name_in("OAUTHBEARER", token, claim) == name


def test_deep_json_is_no_name() -> None:
    payload = base64.urlsafe_b64encode(b"[" * 200_000).decode()
    assert name_in("OAUTHBEARER", bearer(f"a.{payload}.c"), "sub") == UNREADABLE


@pytest.mark.parametrize(
    ("mechanism", "token", "well"),
    [
        ("PLAIN", b"", True),
        ("SCRAM-SHA-256", b"r=abc,s=salt,i=4096", False),
        ("SCRAM-SHA-256", b"e=invalid-proof", False),
        ("SCRAM-SHA-512", b"v=abc", True),
        ("OAUTHBEARER", b'{"status":"invalid_token"}', False),
        ("OAUTHBEARER", b"", True),
        ("GSSAPI", b"any", True),
    ],
)
def test_whether_the_server_agrees(mechanism: str, token: bytes, well: bool) -> None:
    assert agreed(mechanism, token) is well


def test_what_is_readable() -> None:
    mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "OWN"]
    assert [readable(mechanism) for mechanism in mechanisms] == [True] * 4 + [False] * 2
    assert name_in("GSSAPI", b"\0alice\0secret", "sub") == UNREADABLE
