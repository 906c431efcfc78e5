"""SASL: whatever a client sends, a name is a text, and only one that no validator reads in another way.

Input: the mechanism, how the server's message is chosen, and the client's message.
"""

import base64
import json
from collections.abc import Iterator
from typing import Final

from proxy.relay.login.sasl import MECHANISMS, SCRAM, UNREADABLE, agreed, readable
from tests.fuzz.harness import Data, Target
from tests.support.messages.login_messages import name_in

CLAIM: Final = "sub"


def run(data: bytes) -> None:
    given = Data(data)
    mechanism = MECHANISMS[given.byte() % len(MECHANISMS)]
    message = given.rest()
    name = name_in(mechanism, message, CLAIM)
    assert isinstance(name, str)
    assert readable(mechanism) or name == UNREADABLE
    if name != UNREADABLE:
        _check(mechanism, message, name)
    assert agreed(mechanism, message) in (True, False)


def _check(mechanism: str, message: bytes, name: str) -> None:
    """The name stands in the message."""
    if mechanism == "PLAIN":
        assert message.split(b"\0")[1] == name.encode()
    elif mechanism in SCRAM:
        escaped = name.replace("=", "=3D").replace(",", "=2C")
        assert f"n={escaped},r=".encode() in message
    else:
        assert name.strip() == name or name[:1] > " " < name[-1:]
        assert json.loads(base64.urlsafe_b64decode(_payload(message)))[CLAIM] == name


def _payload(message: bytes) -> bytes:
    """The payload of the last token in the message."""
    token = message.rpartition(b"\x01auth=")[2].partition(b"\x01")[0].split(b" ")[-1]
    payload = token.split(b".")[1]
    return payload + b"=" * (-len(payload) % 4)


def _jwt(claims: object) -> bytes:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return b"eyJhbGciOiJub25lIn0." + payload + b"."


def seeds() -> Iterator[bytes]:
    yield b"\0\0alice\0secret"
    yield b"\0admin\0b\xc3\xb6b\0secret"
    for scram in (b"\1", b"\2"):
        yield scram + b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL"
        yield scram + b"n,a=bob,m=x,n=al=2Ci=3Dce,r=fyko,tokenauth=true,x=y"
    for claims in ({"sub": "alice", "exp": 1}, {"sub": " alice"}, {"sub": 1}, ["sub"], {"sub": "\ud800"}):
        yield b"\3n,,\x01auth=Bearer " + _jwt(claims) + b"\x01\x01"
        yield (
            b"\3n,a=x,\x01auth=bearer  "
            + _jwt({"sub": "bob"})
            + b"\x01AUTH=x\x01auth=Bearer "
            + _jwt(claims)
            + b"\x01\x01"
        )
    yield b"\4\x60\x06\x06\x04\x00\x00\x00\x00\x01"


WORDS: Final = (
    *(b",tokenauth=true", b"=2C", b"=3D", b"\x01auth=Bearer ", b"\x01\x01", b"n,,n=", b",r=", b",m=", b"\0"),
)
TARGET: Final = Target(run, seeds, WORDS)
