import base64
import json

import pytest

from proxy.relay.login.sasl import (
    MAX_PAYLOAD,
    UNREADABLE,
    agreed,
    claimed,
    readable,
    single_message,
    why_unreadable,
)
from tests.support.messages.login_messages import name_in


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
        (b"\0alice\0sec\0ret", "alice"),
        (b"\0ali\xffce\0secret", UNREADABLE),
        (b"\xff\0alice\0sec\xffret", "alice"),
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
        (b"n,,m=x,n=alice,r=abc", "alice"),
        (b"n,,m=n=bob,n=alice,r=abc", "alice"),
        (b"n,,n=alice,r=tokenauth=true", "alice"),
        (b"n,,n=alice,r=abc,x=tokenauth=true", "alice"),
        (b"n,,n=alice,r=abc,TokenAuth=true", "alice"),
        (b"n,,n=alice,r=abc,tokenauth=true,tokenauth=no", "alice"),
        (b"n,,n=id7,r=abc,tokenauth=true", UNREADABLE),
        (b"n,,n=id7,r=abc,tokenauth=no,tokenauth=TRUE,x=y", UNREADABLE),
        (b"n,,n==2=2CC,r=abc", UNREADABLE),
        (b"n,,n=a=2c,r=abc", UNREADABLE),
        (b"n,,n=a,r=a b", UNREADABLE),
        (b"n,,n=a\0b,r=abc", UNREADABLE),
        ("n,,n=müller,r=abc".encode(), UNREADABLE),
        (b"y,,n=alice,r=abc", UNREADABLE),
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


def padded(payload: bytes) -> str:
    return f"e30.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}."


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (b"n,,\x01auth=Bearer %b\x01AUTH=Bearer %b\x01\x01", "alice"),
        (b"n,,\x01AUTH=Bearer %b\x01auth=Bearer %b\x01\x01", "bob"),
        (b"n,,\x01auth=Bearer %b\x01auth=Bearer %b\x01\x01", "bob"),
        (b"n,,\x01x=auth=Bearer %b\x01auth=Bearer   %b\x01\x01", "bob"),
        (b"n,a=x\x01y,\x01xauth=%b\x01auth=Bearer %b\x01\x01", "bob"),
        (b"n,,\x01x=Bearer %b\x01y=Bearer %b\x01\x01", UNREADABLE),
        (b"n,,\x01x=%b\x01auth=Bearer %b \x01\x01", UNREADABLE),
        (b"n,,\x01x=%b\x01auth=Basic %b\x01\x01", UNREADABLE),
        (b"n,,\x01x=%b\x01auth=Bearer %b\x01", UNREADABLE),
        (b"n,a=x=y,\x01x=%b\x01auth=Bearer %b\x01\x01", UNREADABLE),
        (b"y,,\x01x=%b\x01auth=Bearer %b\x01\x01", UNREADABLE),
    ],
)
def test_which_of_two_tokens_is_in_force(message: bytes, name: str) -> None:
    tokens = tuple((jwt({"sub": user}) + ".").encode() for user in ("alice", "bob"))
    assert name_in("OAUTHBEARER", message % tokens, "sub") == name


@pytest.mark.parametrize(
    "payload",
    [
        b'{"sub":"alice","sub":"bob"}',
        b'{"sub":" alice"}',
        b'{"sub":"alice\\n"}',
        b'{"sub":""}',
        b'{"sub":"a\\ud800"}',
        b'{"sub":"m\xff"}',
        b'\xef\xbb\xbf{"sub":"alice"}',
        '{"sub":"alice"}'.encode("utf-16"),
    ],
)
def test_a_claim_about_which_validators_may_differ(payload: bytes) -> None:
    assert name_in("OAUTHBEARER", bearer(padded(payload)), "sub") == UNREADABLE


def test_a_token_is_parsed_up_to_a_size() -> None:
    """Whatever the size, a message of a client that has not logged in costs no JSON."""
    filled = [jwt({"sub": "alice", "x": "x" * size}) + "." for size in (1_000, MAX_PAYLOAD)]
    assert [name_in("OAUTHBEARER", bearer(token), "sub") for token in filled] == ["alice", UNREADABLE]
    assert [bool(claimed("OAUTHBEARER", bearer(token))) for token in filled] == [True, False]


def test_deep_json_is_no_name() -> None:
    payload = base64.urlsafe_b64encode(b"[" * 45_000).decode()
    assert len(payload) < MAX_PAYLOAD
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


def test_which_mechanisms_take_another_message_after_a_rejected_one() -> None:
    assert [single_message(mechanism) for mechanism in ("OAUTHBEARER", "SCRAM-SHA-512")] == [True, False]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"])
def test_each_mechanism_has_a_reason(mechanism: str) -> None:
    assert why_unreadable(mechanism, "sub") != why_unreadable("", "sub")
