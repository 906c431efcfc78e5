"""Generated messages of SASL logins: ordinary ones, ones that Kafka's grammars barely allow, and damaged
ones.

Most name ME, and try to make a parser read VICTIM or no name.
"""

import base64
import hashlib
import hmac
import json
from random import Random
from typing import Final

from proxy.relay.login.sasl import claimed, name_of

ME: Final = "mallory"
VICTIM: Final = "alice"
KEY: Final = b"k" * 32
"""Signs tokens."""
FAR_FUTURE: Final = 4_000_000_000
_NAMES: Final = [
    ME,
    VICTIM,
    "ab",
    "a b",
    "Alice",
    "müller",
    "李",
    "x=y",
    "a,b",
    "\x01",
    "=2C",
    "=3D2C",
    "%",
    "a\n",
]
_ASCII_NAMES: Final = [ME, VICTIM, "ab", "a b", "Alice", "x=y", "a,b", "\x01", "=2C", "=3D2C", "%", "a\n"]
_BAD_UTF_8: Final = [
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xf0\x90\x80",
    b"\xe2\x82",
    b"\xf8\x88",
]
_BYTES: Final = [
    b"\0",
    b"\x01",
    b",",
    b"=",
    b"=2C",
    b"=3D",
    b"=2c",
    b" ",
    b"\t",
    b"\n",
    b"\x7f",
    b"n=",
    b"a=",
]


def name_in(mechanism: str, message: bytes, oauth_claim: str) -> str:
    """The name that the proxy reads in a client's first message; UNREADABLE if there is none."""
    return name_of(mechanism, claimed(mechanism, message), oauth_claim)


def _mutated(random: Random, message: bytes) -> bytes:
    """Make one or two small changes."""
    for _ in range(random.choice([1, 1, 2])):
        at = random.randrange(len(message) + 1)
        to = min(len(message), at + random.choice([0, 1, 1, 3]))
        kind = random.randrange(5)
        if kind == 0:
            message = message[:at] + message[to:]
        elif kind == 1:
            message = message[:at] + message[at:to] + message[at:]
        elif kind == 2:
            message = message[:at] + random.choice(_BYTES + _BAD_UTF_8) + message[to:]
        elif kind == 3:
            message = message[:at] + message[at:to].swapcase() + message[to:]
        else:
            message = message[:at] + bytes([random.randrange(256)]) + message[at:]
    return message


def plain(random: Random) -> bytes:
    name = random.choice(_NAMES).encode()
    if random.random() < 0.1:
        name += random.choice(_BAD_UTF_8)
    tokens = [
        random.choice([b"", b"", name, b"alice"]),
        name,
        random.choice([b"secret", b"", b"s\xff", b"\xed\xa0\x80"]),
    ]
    if random.random() < 0.2:
        tokens.insert(random.randrange(4), random.choice([b"", b"alice"]))
    if random.random() < 0.1:
        tokens.pop(random.randrange(len(tokens)))
    message = b"\0".join(tokens)
    return _mutated(random, message) if random.random() < 0.3 else message


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _mostly(random: Random, usual: str, odd: list[str]) -> str:
    return random.choice(odd) if random.random() < 0.15 else usual


def scram(random: Random) -> bytes:
    name = _escaped(random.choice([*_ASCII_NAMES, _mostly(random, ME, _NAMES)]))
    name = _mostly(random, "", ["=2=2CC", "=3=3DD", "=2c", "a=", "=", "=3D=2C", "a=3Db=2C"]) + name
    start = _mostly(random, "n,", ["y,", "p=tls-unique,", "N,"])
    authzid = _mostly(random, "", [f"a={name}", f"a={name}", "a=alice", "a=", "alice"])
    reserved = random.choice(
        ["", "", "m=x,", "m=n=alice,", _mostly(random, "", ["m=,", "M=x,", "m=x,m=y,", "n=alice,"])]
    )
    nonce = random.choice(
        ["abc", "tokenauth=true", "n=alice", "=", "!~", _mostly(random, "r=x", ["a b", "", "\x7f"])]
    )
    keys = [
        "tokenauth",
        "tokenauth",
        "TokenAuth",
        "xtokenauth",
        "tokenauthx",
        "x",
        "n",
        _mostly(random, "m", ["1", ""]),
    ]
    values = ["true", "TRUE", "True", "false", "yes", "true ", "=", "tokenauth=true", "a b\x01", "tRuE=x"]
    extensions = "".join(
        f",{random.choice(keys)}={_mostly(random, random.choice(values), ['', 'é'])}"
        for _ in range(random.choice([0, 0, 1, 1, 2, 3]))
    )
    message = f"{start}{authzid},{reserved}n={name},r={nonce}{extensions}".encode()
    return _mutated(random, message) if random.random() < 0.15 else message


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _claims(random: Random, name: str) -> bytes:
    """A payload, mostly an ordinary one."""
    times = f'"iat":1,"exp":{FAR_FUTURE}'
    quoted = json.dumps(name, ensure_ascii=random.random() < 0.5)
    odd = [
        f'{{"sub":"alice","sub":{quoted},{times}}}',
        f'{{"sub":{quoted},"sub":"alice",{times}}}',
        f'{{"SUB":"alice","sub":{quoted},{times}}}',
        f'{{"s\\u0075b":{quoted},{times}}}',
        f'{{"sub":["{name}"],{times}}}',
        f'{{"sub":{{"sub":"alice"}},{times}}}',
        f'{{"x":{{"sub":"alice"}},"sub":{quoted},{times}}}',
        f'{{"sub":" {name} ",{times}}}',
        f'{{"sub":"a\\ud800",{times}}}',
        f'{{"sub":"a\\u0000b",{times}}}',
        f'{{"sub":"",{times}}}',
        f'{{"sub":"  ",{times}}}',
        f'{{"sub":7,{times}}}',
        f'{{"sub":null,{times}}}',
        f'{{"sub":{quoted},{times}}} {{"sub":"alice"}}',
        f'\ufeff{{"sub":{quoted},{times}}}',
        f'{{"sub":{quoted},{times},"x":NaN}}',
        f'{{"sub":{quoted},{times},}}',
        f'{{/* */"sub":{quoted},{times}}}',
        f' {{ "sub" : {quoted} , {times} }} \n',
    ]
    if random.random() < 0.6:
        return f'{{"sub":{quoted},{times}}}'.encode()
    text = random.choice(odd)
    encoding = random.choice(["utf-8"] * 12 + ["utf-16", "utf-16-be", "utf-32-le", "latin-1"])
    return text.encode(encoding, "replace")


def token(random: Random, name: str, signed: bool) -> str:
    """A JWT that some brokers accept: unsecured, or signed with KEY."""
    header = _base64url(json.dumps({"alg": "HS256" if signed else "none"}).encode())
    body = _base64url(_claims(random, name))
    if random.random() < 0.1:
        at = random.randrange(len(body) + 1)
        body = body[:at] + random.choice(["=", "==", "~", "+", "/", "-", "_", "A", ""]) + body[at:]
    signature = ""
    if signed:
        made = hmac.new(KEY, f"{header}.{body}".encode(), hashlib.sha256).digest()
        signature = _base64url(made) + random.choice([""] * 9 + ["=", "A"])
    return f"{header}.{body}.{signature}" + random.choice([""] * 12 + [".", "..", ".x"])


def _value(random: Random, signed: bool) -> str:
    who = random.choice(_NAMES if signed else [ME, ME, VICTIM, "müller"])
    scheme = random.choice(["Bearer", "Bearer", "bearer", "BEARER", "Bearer "])
    scheme = _mostly(random, scheme, ["Basic", "Be4rer", " Bearer", "Bearer\t", "\u212aearer"])
    return f"{scheme} {token(random, who, signed)}" + _mostly(random, "", [" ", "\t", "\n", "="])


def _extension(random: Random, signed: bool) -> str:
    key = random.choice(
        ["AUTH", "Auth", "aUTH", "traceId", "xauth", "authx", _mostly(random, "x", ["k1", "", "auth"])]
    )
    value = random.choice(["x", "auth=Bearer x.y.z", "a\tb\r\n", "b=c", "Bearer", _value(random, signed)])
    return f"{key}={_mostly(random, value, ['', 'é', chr(1)])}\x01"


def oauthbearer(random: Random, signed: bool = False) -> bytes:
    start = _mostly(random, "n,", ["y,", "p=x,", "N,", "n", "n,,"])
    authzid = _mostly(random, "", [f"a={ME}", f"a={ME}", "a=alice", "a=", "a=a\x01b", "a==2C", "a=x=2Cy"])
    pairs = [f"auth={_value(random, signed)}\x01" for _ in range(random.choice([1] * 8 + [2, 2, 0]))]
    for _ in range(random.choice([0, 1, 1, 2])):
        pairs.insert(random.randrange(len(pairs) + 1), _extension(random, signed))
    message = f"{start}{authzid},\x01{''.join(pairs)}\x01".encode()
    return _mutated(random, message) if random.random() < 0.15 else message
