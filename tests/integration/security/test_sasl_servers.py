"""Whom Kafka's own SASL servers authenticate by generated messages, and whom we read in them.

Whenever Kafka authenticates a user, the proxy reads that user's name, or none.
"""

import base64
from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from proxy.relay.login.sasl import UNREADABLE
from tests.support.kafka.tool_server import run_java
from tests.support.messages.login_messages import KEY, name_in, oauthbearer, plain, scram

pytestmark = pytest.mark.kafka
SEEDS: Final = 6000
REPLACEMENT: Final = "\ufffd"
LONG: Final = 20_000

Messages = Callable[[Random], bytes]


def signed(random: Random) -> bytes:
    return oauthbearer(random, signed=True)


def asked(lines: list[tuple[str, list[bytes]]]) -> list[tuple[str, str]]:
    """What Kafka says to each login: NAME, OWNER or REJECTED, and who or why."""
    given = "".join(
        " ".join([mechanism, *(part.hex() for part in parts)]) + "\n" for mechanism, parts in lines
    )
    responses = []
    for line in run_java("SaslServers", KEY.hex(), given=given):
        verdict, _, rest = line.partition(" ")
        responses.append((verdict, rest if verdict == "REJECTED" else bytes.fromhex(rest).decode()))
    assert len(responses) == len(lines)
    return responses


def read(mechanism: str, message: bytes) -> str:
    return name_in("OAUTHBEARER" if mechanism == "SIGNED" else mechanism, message, "sub")


@pytest.mark.parametrize(
    ("mechanism", "generate", "exact"),
    [
        ("PLAIN", plain, True),
        ("SCRAM-SHA-256", scram, True),
        ("OAUTHBEARER", oauthbearer, False),
        ("SIGNED", signed, False),
    ],
)
def test_nobody_is_taken_for_another(mechanism: str, generate: Messages, exact: bool) -> None:
    """`exact`: every name is read but those that are not UTF-8. Of tokens some are left unread: those whose
    JSON parsers disagree about.
    """
    messages = [generate(Random(seed)) for seed in range(SEEDS)]
    verdicts = asked([(mechanism, [message]) for message in messages])
    agreed = unread = 0
    for message, (verdict, who) in zip(messages, verdicts, strict=True):
        name = read(mechanism, message)
        if verdict == "NAME":
            assert name in (who, UNREADABLE), message
            agreed += name == who
            unread += name == UNREADABLE
            assert not exact or name == who or REPLACEMENT in who, message
        elif verdict == "OWNER":
            assert name == UNREADABLE, message
    assert agreed > SEEDS // 10
    assert unread < agreed // 3


def test_a_token_after_a_rejected_one() -> None:
    """The rejected token names another user; the user of the last token is authenticated."""
    expired = (
        base64.urlsafe_b64encode(b'{"alg":"none"}')
        + b"."
        + base64.urlsafe_b64encode(b'{"sub":"alice","iat":1,"exp":2}')
    )
    expired = b"n,,\x01auth=Bearer " + expired.replace(b"=", b"") + b".\x01\x01"
    logins = [[expired, oauthbearer(Random(seed))] for seed in range(SEEDS // 3)]
    verdicts = asked([("OAUTHBEARER", parts) for parts in logins])
    agreed = 0
    for parts, (verdict, who) in zip(logins, verdicts, strict=True):
        if verdict == "NAME":
            assert read("OAUTHBEARER", parts[-1]) in (who, UNREADABLE), parts
            agreed += 1
    assert agreed > SEEDS // 30


def test_huge_messages() -> None:
    logins = [
        ("PLAIN", b"\0" + b"a" * LONG + b"\0secret"),
        ("SCRAM-SHA-256", b"n,,n=" + b"a" * LONG + b",r=abc"),
        ("SCRAM-SHA-256", b"n,,n=ab,r=abc" + b",x=y" * LONG + b",tokenauth=true"),
        ("SCRAM-SHA-256", b"n,,n=ab,r=" + b"tokenauth=true" * LONG),
        ("SCRAM-SHA-256", b"n,,m=" + b"n=alice" * LONG + b",n=ab,r=abc"),
        ("OAUTHBEARER", b"n,,\x01" + b"x=y\x01" * LONG + oauthbearer(Random(1))[4:]),
    ]
    verdicts = asked([(mechanism, [message]) for mechanism, message in logins])
    for (mechanism, message), (verdict, who) in zip(logins, verdicts, strict=True):
        if verdict == "NAME":
            assert read(mechanism, message) == who
        elif verdict == "OWNER":
            assert read(mechanism, message) == UNREADABLE
