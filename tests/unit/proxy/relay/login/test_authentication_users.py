"""The user of a connection is the one that the broker accepted, or the login is rejected."""

import pytest
from kio.schema.errors import ErrorCode

from proxy.relay.close_reasons import NO_PRINCIPAL
from proxy.relay.counters.traffic import Traffic
from proxy.relay.login.authentication import Login
from tests.support.messages.exchanges import opaque
from tests.support.messages.kio_messages import framed
from tests.support.messages.logins import RAW, handshake, handshaken, message, replied
from tests.support.stories.logging_in import (
    ALICE,
    BOB,
    FINAL,
    FIRST,
    METADATA_LIKE,
    SERVER_FINAL,
    SERVER_FIRST,
    STRICT,
    UNNAMED,
    VERSIONS,
    bearer,
    begin,
    jwt,
    local_response,
    login_story,
    request,
    step,
    users,
)
from tests.support.stories.playbook import Playbook

LATER = pytest.mark.parametrize("version", VERSIONS)
MALLORY = b"n,,n=mallory,r=abc"


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


@pytest.fixture
def story(traffic: Traffic) -> Playbook:
    return login_story(traffic, UNNAMED)


@pytest.fixture
def strict(traffic: Traffic) -> Playbook:
    return login_story(traffic, STRICT)


# Messages that can be read in two ways: the user is the one that the broker accepts


@LATER
@pytest.mark.parametrize("extension", [b"AUTH=Bearer ", b"Auth=Bearer ", b"aUtH=bearer "])
def test_an_extension_that_is_named_like_the_token(
    story: Playbook, traffic: Traffic, version: int, extension: bytes
) -> None:
    begin(story, "OAUTHBEARER", version)
    step(story, 2, bearer("mallory", extension + jwt("alice")), b"", version)
    request(story)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


@LATER
def test_a_token_after_a_rejected_one_of_another_user(
    story: Playbook, traffic: Traffic, version: int
) -> None:
    begin(story, "OAUTHBEARER", version)
    step(story, 2, bearer("alice"), b'{"status":"invalid_token"}', version)
    step(story, 3, bearer("mallory"), b"", version)
    request(story)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


@LATER
@pytest.mark.parametrize(
    "first",
    [b"n,,n=mallory,r=tokenauth=true", b"n,,m=n=alice,n=mallory,r=abc", b"n,,n=mallory,r=a,x=tokenauth=true"],
)
def test_a_scram_name_that_seems_unreadable(
    strict: Playbook, traffic: Traffic, version: int, first: bytes
) -> None:
    begin(strict, "SCRAM-SHA-256", version)
    step(strict, 2, first, SERVER_FIRST, version)
    step(strict, 3, FINAL, SERVER_FINAL, version)
    request(strict)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


@LATER
def test_a_password_with_a_nul(strict: Playbook, traffic: Traffic, version: int) -> None:
    begin(strict, "PLAIN", version)
    step(strict, 2, b"\0mallory\0secret\0alice", b"", version)
    request(strict)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


# A login of which the proxy cannot read the user is rejected

UNREADABLE = [
    ("PLAIN", b"\0m\xff\0secret", b"", "the user name is not UTF-8"),
    (
        "OAUTHBEARER",
        b"n,,\x01auth=Bearer opaque\x01\x01",
        b"",
        "the token is not a JWT with a text as its claim sub",
    ),
    ("GSSAPI", b"\x60\x82\x01\x02init", b"\x60final", "logins by GSSAPI cannot be read"),
    ("MINE", b"\0alice\0secret", b"", "logins by MINE cannot be read"),
]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(("mechanism", "token", "last", "why"), UNREADABLE)
def test_a_login_that_names_nobody(
    strict: Playbook, traffic: Traffic, version: int, mechanism: str, token: bytes, last: bytes, why: str
) -> None:
    begin(strict, mechanism, version)
    strict.client(message(2, token, version)).to_broker(message(2, token, version))
    strict.broker_fails(replied(2, last, version), reason=NO_PRINCIPAL, says=f"names no user: {why}")
    response = local_response(strict, version)
    assert response.error_code is ErrorCode.sasl_authentication_failed
    assert why in response.error_message
    assert response.auth_bytes == b""


@pytest.mark.parametrize(("mechanism", "token", "last", "why"), UNREADABLE)
def test_a_login_by_bare_messages_that_names_nobody(
    strict: Playbook, mechanism: str, token: bytes, last: bytes, why: str
) -> None:
    begin(strict, mechanism, RAW)
    strict.client(message(2, token, RAW)).to_broker(message(2, token, RAW))
    strict.broker_fails(replied(2, last, RAW), reason=NO_PRINCIPAL, says=why)
    strict.to_client()


@pytest.mark.parametrize(
    "extensions", [b"tokenauth=true", b"tokenauth=TRUE", b"tokenauth=false,tokenauth=true"]
)
def test_a_delegation_token(strict: Playbook, traffic: Traffic, extensions: bytes) -> None:
    """The name is the token's, and its owner is who the broker takes the client for."""
    begin(strict, "SCRAM-SHA-256")
    step(strict, 1, b"n,,n=token-id,r=abc," + extensions, SERVER_FIRST)
    strict.client(message(2, FINAL)).to_broker(message(2, FINAL))
    strict.broker_fails(replied(2, SERVER_FINAL), reason=NO_PRINCIPAL, says="the owner of a delegation token")
    assert "delegation token" in local_response(strict).error_message
    assert users(traffic) == {"ANONYMOUS"}


def test_a_delegation_token_where_there_is_a_principal_for_it(story: Playbook, traffic: Traffic) -> None:
    begin(story, "SCRAM-SHA-256")
    step(story, 2, b"n,,n=token-id,r=abc,tokenauth=true", SERVER_FIRST)
    step(story, 3, FINAL, SERVER_FINAL)
    request(story)
    assert users(traffic) == {"ANONYMOUS", "unnamed"}


def test_a_name_that_is_too_long_to_tell(traffic: Traffic) -> None:
    login = Login("sub", "", frozenset(["alice"]))
    story = login_story(traffic, login)
    begin(story, "PLAIN", 0)
    story.client(message(2, b"\0" + "李".encode() * 50_000 + b"\0secret", 0))
    story.broker_fails(replied(2, b"", 0), reason="not_a_broker", says="李李")
    assert len(local_response(story, 0).error_message) == 1000


# The user is the one that the broker accepted last


def test_a_message_without_a_handshake(strict: Playbook, traffic: Traffic) -> None:
    """Brokers reject it with error 34; if one took it, nobody would know by which mechanism."""
    begin(strict, "PLAIN")
    step(strict, 2, ALICE, b"")
    step(strict, 3, BOB, b"", 2, ErrorCode.illegal_sasl_state)
    request(strict)
    assert users(traffic) == {"ANONYMOUS", "alice"}
    strict.client(message(2, BOB))
    strict.broker_fails(replied(2), reason=NO_PRINCIPAL, says="names no user")


def test_a_message_before_any_handshake(strict: Playbook, traffic: Traffic) -> None:
    strict.client(message(2, ALICE)).to_broker(message(2, ALICE))
    strict.broker_fails(replied(2), reason=NO_PRINCIPAL, says="logins by no mechanism")
    assert users(traffic) == {"ANONYMOUS"}


def test_a_handshake_that_the_broker_rejects_leaves_the_session(strict: Playbook, traffic: Traffic) -> None:
    """As one within a second of the last: the session goes on, and so does its name."""
    begin(strict, "PLAIN")
    step(strict, 2, ALICE, b"")
    rejected = handshaken(1, 1, ErrorCode.illegal_sasl_state)
    strict.client(handshake(1, "SCRAM-SHA-256")).broker(rejected).to_broker(handshake(1, "SCRAM-SHA-256"))
    strict.to_client(rejected)
    step(strict, 3, MALLORY, b"", 2, ErrorCode.illegal_sasl_state)
    request(strict)
    assert users(traffic) == {"ANONYMOUS", "alice"}


def test_the_mechanism_is_that_of_the_last_accepted_handshake(strict: Playbook, traffic: Traffic) -> None:
    """The same bytes name a user by one mechanism, and none by another."""
    begin(strict, "SCRAM-SHA-256")
    begin(strict, "PLAIN")
    step(strict, 2, ALICE, b"")
    request(strict)
    assert users(traffic) == {"ANONYMOUS", "alice"}


def test_a_handshake_forgets_the_name_before_it(strict: Playbook, traffic: Traffic) -> None:
    begin(strict, "SCRAM-SHA-256")
    step(strict, 2, FIRST, SERVER_FIRST)
    begin(strict, "SCRAM-SHA-256")
    step(strict, 3, MALLORY, SERVER_FIRST)
    step(strict, 4, FINAL, SERVER_FINAL)
    request(strict)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


def test_only_the_first_scram_message_names(strict: Playbook, traffic: Traffic) -> None:
    begin(strict, "SCRAM-SHA-256")
    step(strict, 2, MALLORY, SERVER_FIRST)
    step(strict, 3, FIRST, SERVER_FINAL)
    request(strict)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


@pytest.mark.parametrize(("before", "after"), [(RAW, 2), (2, RAW), (RAW, RAW)])
def test_bare_messages_and_requests_in_one_connection(
    strict: Playbook, traffic: Traffic, before: int, after: int
) -> None:
    for version, token in ((before, ALICE), (after, BOB)):
        begin(strict, "PLAIN", version)
        step(strict, 2, token, b"", version)
        request(strict)
    assert users(traffic) == {"ANONYMOUS", "alice", "bob"}


def test_the_first_bare_message_is_never_a_request(story: Playbook, traffic: Traffic) -> None:
    """Else what follows would be nobody's, although the broker has taken it for a login."""
    begin(story, "MINE", RAW)
    token = opaque(9, METADATA_LIKE)[4:]
    story.client(framed(token)).to_broker(framed(token))
    story.broker(framed(b"\0\0\0\x09")).to_client(framed(b"\0\0\0\x09"))
    request(story)
    assert users(traffic) == {"ANONYMOUS", "unnamed"}
