"""Logins pass as they are, and who has logged in is whose requests count; stories of whole connections."""

import base64
import json

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR, NO_PRINCIPAL
from proxy.relay.login.authentication import Login
from proxy.relay.traffic import Traffic
from tests.support.messages.exchanges import opaque, responded
from tests.support.messages.kio_messages import Ports, framed, read_frame, response_frame, response_type
from tests.support.messages.logins import AUTHENTICATE, RAW, handshake, handshaken, message, replied
from tests.support.stories.playbook import Playbook, drive

VERSIONS = [0, 1, 2, RAW]
LATER = pytest.mark.parametrize("version", VERSIONS)
ALICE = b"\0alice\0alices-secret"
BOB = b"\0bob\0bobs-secret"
FIRST = b"n,,n=alice,r=abc"
SERVER_FIRST = b"r=abcdef,s=salt,i=4096"
FINAL = b"c=biws,r=abcdef,p=proof"
SERVER_FINAL = b"v=signature"
MALLORY = b"n,,n=mallory,r=abc"
METADATA_LIKE = 42
OWN = 49


@pytest.fixture
def traffic():
    return Traffic()


@pytest.fixture
def story(traffic):
    login = Login("sub", "unnamed")
    relay = drive(
        QuotaEngine([]),
        Ports(),
        traffic,
        client_address="::1",
        intercepted_api_keys=frozenset([OWN]),
        max_frame_bytes=2 << 20,
        login=login,
    )
    return Playbook(relay)


@pytest.fixture
def strict(traffic):
    """A listener without a principal for logins that name nobody, as is the default."""
    login = Login("sub", "")
    return Playbook(
        drive(QuotaEngine([]), Ports(), traffic, client_address="::1", max_frame_bytes=2 << 20, login=login)
    )


def users(traffic):
    """Who has sent requests."""
    return {user for (user, _), counted in traffic.clients.items() if counted.bytes_in}


def jwt(user):
    claims = base64.urlsafe_b64encode(json.dumps({"sub": user}).encode()).rstrip(b"=")
    return b"e30." + claims + b"."


def bearer(user, *extensions):
    return (
        b"n,,\x01" + b"".join(part + b"\x01" for part in (b"auth=Bearer " + jwt(user), *extensions)) + b"\x01"
    )


def begin(story, mechanism, version=2):
    asked = 0 if version == RAW else 1
    story.client(handshake(1, mechanism, asked)).to_broker(handshake(1, mechanism, asked))
    story.broker(handshaken(1, asked)).to_client(handshaken(1, asked))


def step(story, number, token, reply, version=2, error=ErrorCode.none):
    """A message and its response, both as they are."""
    story.client(message(number, token, version)).to_broker(message(number, token, version))
    response = replied(number, reply, version, error)
    story.broker(response).to_client(response)


def ask(story, number=50, api_key=METADATA_LIKE):
    story.client(opaque(number, api_key)).to_broker(opaque(number, api_key))
    story.broker(responded(number)).to_client(responded(number)).idle()


@LATER
def test_plain(story, traffic, version):
    begin(story, "PLAIN", version)
    step(story, 2, ALICE, b"", version)
    assert users(traffic) <= {"ANONYMOUS"}
    ask(story)
    assert "alice" in users(traffic)


@LATER
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_is_over_with_the_server_s_last_message(story, traffic, mechanism, version):
    begin(story, mechanism, version)
    step(story, 2, FIRST, SERVER_FIRST, version)
    story.client(message(3, FINAL, version)).to_broker(message(3, FINAL, version))
    assert users(traffic) <= {"ANONYMOUS"}
    story.broker(replied(3, SERVER_FINAL, version)).to_client(replied(3, SERVER_FINAL, version))
    ask(story)
    assert "alice" in users(traffic)


@LATER
def test_a_rejected_token_comes_with_error_code_0_first(story, traffic, version):
    begin(story, "OAUTHBEARER", version)
    step(story, 2, b"n,,\x01auth=Bearer e30.eyJzdWIiOiJhbGljZSJ9.\x01\x01", b'{"status":"no"}', version)
    if version == RAW:
        story.client(message(3, b"\x01", version))
        story.relay.end()
    else:
        step(story, 3, b"\x01", b"", version, ErrorCode.sasl_authentication_failed)
        ask(story)
    assert users(traffic) <= {"ANONYMOUS"}
    assert traffic.failed_logins == {("OAUTHBEARER", "::1"): 1}


@LATER
def test_a_token_that_is_taken(story, traffic, version):
    begin(story, "OAUTHBEARER", version)
    step(story, 2, b"n,,\x01auth=Bearer e30.eyJzdWIiOiJhbGljZSJ9.\x01\x01", b"", version)
    ask(story)
    assert "alice" in users(traffic)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_wrong_password_is_counted_and_names_nobody(story, traffic, version):
    begin(story, "PLAIN", version)
    step(story, 2, ALICE, b"", version, ErrorCode.sasl_authentication_failed)
    ask(story)
    assert users(traffic) == {"ANONYMOUS"}
    assert traffic.failed_logins == {("PLAIN", "::1"): 1}


def test_a_wrong_password_amid_bare_messages_is_a_connection_that_ends(story, traffic):
    begin(story, "PLAIN", RAW)
    story.client(message(2, ALICE, RAW))
    story.relay.end()
    assert traffic.failed_logins == {("PLAIN", "::1"): 1}


def test_an_unknown_mechanism(story, traffic):
    rejected = handshaken(1, 1, ErrorCode.unsupported_sasl_mechanism)
    story.client(handshake(1, "MINE")).to_broker(handshake(1, "MINE")).broker(rejected).to_client(rejected)
    assert traffic.failed_logins == {("other", "::1"): 1}


def test_what_is_sent_along_with_a_right_password_is_the_user_s(story, traffic):
    begin(story, "PLAIN")
    story.client(message(2, ALICE) + opaque(3, METADATA_LIKE)).to_broker(message(2, ALICE))
    assert story.relay.client_muted
    story.broker(replied(2)).to_client(replied(2)).to_broker(opaque(3, METADATA_LIKE))
    assert [user for user, _ in traffic.clients] == ["ANONYMOUS", "ANONYMOUS", "alice"]
    assert traffic.clients["alice", "client"].bytes_in == len(opaque(3, METADATA_LIKE))


def test_what_is_sent_along_with_a_wrong_one_is_nobody_s(story, traffic):
    begin(story, "PLAIN")
    story.client(message(2, ALICE) + opaque(3, METADATA_LIKE))
    story.broker(replied(2, error=ErrorCode.sasl_authentication_failed))
    assert users(traffic) == {"ANONYMOUS"}


@pytest.mark.parametrize(
    ("error", "failures"), [(ErrorCode.illegal_sasl_state, {}), (ErrorCode.sasl_authentication_failed, 1)]
)
def test_another_login_that_is_rejected_changes_nothing(story, traffic, error, failures):
    begin(story, "PLAIN")
    step(story, 2, ALICE, b"")
    begin(story, "PLAIN")
    step(story, 4, BOB, b"", 2, error)
    ask(story)
    assert users(traffic) == {"ANONYMOUS", "alice"}
    assert len(traffic.failed_logins) == (1 if failures else 0)


def test_another_login_that_is_taken(story, traffic):
    begin(story, "PLAIN")
    step(story, 2, ALICE, b"")
    begin(story, "SCRAM-SHA-256")
    step(story, 3, b"n,,n=bob,r=abc", SERVER_FIRST)
    ask_before = users(traffic)
    step(story, 4, FINAL, SERVER_FINAL)
    ask(story)
    assert "bob" not in ask_before
    assert "bob" in users(traffic)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "MINE"])
def test_a_mechanism_that_nobody_reads(story, traffic, mechanism):
    begin(story, mechanism)
    step(story, 2, ALICE, b"challenge")
    step(story, 3, b"more", b"")
    ask(story)
    assert users(traffic) == {"ANONYMOUS", "unnamed"}


def test_bare_messages_of_a_mechanism_that_nobody_reads(story, traffic):
    begin(story, "GSSAPI", RAW)
    for token in (b"\x60\x82\x01\x02init", b"", b"\x05\x04\x05\xffwrapped-token"):
        step(story, 0, token, b"\x60final", RAW)
    ask(story)
    assert users(traffic) == {"ANONYMOUS", "unnamed"}
    ask(story, 51)


def test_the_proxy_answers_nothing_before_a_login(story):
    ask(story, api_key=OWN)
    begin(story, "PLAIN")
    step(story, 2, ALICE, b"")
    story.client(opaque(60, OWN)).to_broker().own(responded(60)).to_client(responded(60))


def test_a_message_in_pieces(story, traffic):
    begin(story, "PLAIN")
    whole, response = message(2, ALICE), replied(2)
    story.client(*(whole[at : at + 1] for at in range(len(whole)))).to_broker(whole)
    story.broker(*(response[at : at + 1] for at in range(len(response)))).to_client(response)
    ask(story)
    assert "alice" in users(traffic)


def test_a_message_that_is_too_large(story):
    begin(story, "PLAIN")
    story.client_fails(
        message(2, bytes(3 << 19))[: 5 << 18], reason=CLIENT_PROTOCOL_ERROR, says="a message of a login"
    )


def test_a_version_that_nobody_knows(story):
    frame = framed(b"\0\x24\0\x09\0\0\0\x01\xff\xff")
    story.client_fails(frame, reason=CLIENT_PROTOCOL_ERROR, says="SaslAuthenticate v9 is not supported")


@pytest.mark.parametrize(("user", "served"), [("alice", True), ("bob", False)])
def test_where_only_some_are_served(traffic, user, served):
    login = Login("sub", "unnamed", frozenset(["alice"]))
    relay = drive(
        QuotaEngine([]), Ports(), traffic, client_address="::1", max_frame_bytes=2 << 20, login=login
    )
    story = Playbook(relay)
    begin(story, "PLAIN")
    story.client(message(2, f"\0{user}\0secret".encode()))
    if served:
        story.broker(replied(2)).to_client(replied(2))
    else:
        story.broker_fails(replied(2), reason="not_a_broker", says="bob has logged in, which is none of")
        assert told(story).error_code is ErrorCode.sasl_authentication_failed


def test_where_logins_are_not_watched_they_pass(traffic):
    relay = drive(QuotaEngine([]), Ports(), traffic, client_address="::1", max_frame_bytes=2 << 20)
    story = Playbook(relay)
    begin(story, "PLAIN")
    step(story, 2, ALICE, b"")
    ask(story)
    assert users(traffic) == {"ANONYMOUS"}


def told(story, version=2):
    """The response to message 2 that the client gets instead of the broker's."""
    frame = b"".join(story.relay.take_to_client())
    response = read_frame(response_type(AUTHENTICATE, version), frame)
    assert response_frame(response, 2) == frame
    return response


# Whoever shapes a message so that it is read in two ways is who the broker says


@LATER
@pytest.mark.parametrize("extension", [b"AUTH=Bearer ", b"Auth=Bearer ", b"aUtH=bearer "])
def test_an_extension_that_is_named_like_the_token(story, traffic, version, extension):
    begin(story, "OAUTHBEARER", version)
    step(story, 2, bearer("mallory", extension + jwt("alice")), b"", version)
    ask(story)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


@LATER
def test_a_token_after_a_rejected_one_of_another_user(story, traffic, version):
    begin(story, "OAUTHBEARER", version)
    step(story, 2, bearer("alice"), b'{"status":"invalid_token"}', version)
    step(story, 3, bearer("mallory"), b"", version)
    ask(story)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


@LATER
@pytest.mark.parametrize(
    "first",
    [b"n,,n=mallory,r=tokenauth=true", b"n,,m=n=alice,n=mallory,r=abc", b"n,,n=mallory,r=a,x=tokenauth=true"],
)
def test_a_scram_name_that_seems_unreadable(strict, traffic, version, first):
    begin(strict, "SCRAM-SHA-256", version)
    step(strict, 2, first, SERVER_FIRST, version)
    step(strict, 3, FINAL, SERVER_FINAL, version)
    ask(strict)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


@LATER
def test_a_password_with_a_nul(strict, traffic, version):
    begin(strict, "PLAIN", version)
    step(strict, 2, b"\0mallory\0secret\0alice", b"", version)
    ask(strict)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


# Whom nobody can name is rejected

UNNAMED = [
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
@pytest.mark.parametrize(("mechanism", "token", "last", "why"), UNNAMED)
def test_a_login_that_names_nobody(strict, traffic, version, mechanism, token, last, why):
    begin(strict, mechanism, version)
    strict.client(message(2, token, version)).to_broker(message(2, token, version))
    strict.broker_fails(replied(2, last, version), reason=NO_PRINCIPAL, says=f"names no user: {why}")
    response = told(strict, version)
    assert response.error_code is ErrorCode.sasl_authentication_failed
    assert why in response.error_message
    assert response.auth_bytes == b""


@pytest.mark.parametrize(("mechanism", "token", "last", "why"), UNNAMED)
def test_a_login_by_bare_messages_that_names_nobody(strict, mechanism, token, last, why):
    begin(strict, mechanism, RAW)
    strict.client(message(2, token, RAW)).to_broker(message(2, token, RAW))
    strict.broker_fails(replied(2, last, RAW), reason=NO_PRINCIPAL, says=why)
    strict.to_client()


@pytest.mark.parametrize(
    "extensions", [b"tokenauth=true", b"tokenauth=TRUE", b"tokenauth=false,tokenauth=true"]
)
def test_a_delegation_token(strict, traffic, extensions):
    """The name is the token's, and its owner is who the broker takes the client for."""
    begin(strict, "SCRAM-SHA-256")
    step(strict, 1, b"n,,n=token-id,r=abc," + extensions, SERVER_FIRST)
    strict.client(message(2, FINAL)).to_broker(message(2, FINAL))
    strict.broker_fails(replied(2, SERVER_FINAL), reason=NO_PRINCIPAL, says="the owner of a delegation token")
    assert "delegation token" in told(strict).error_message
    assert users(traffic) == {"ANONYMOUS"}


def test_a_delegation_token_where_there_is_a_principal_for_it(story, traffic):
    begin(story, "SCRAM-SHA-256")
    step(story, 2, b"n,,n=token-id,r=abc,tokenauth=true", SERVER_FIRST)
    step(story, 3, FINAL, SERVER_FINAL)
    ask(story)
    assert users(traffic) == {"ANONYMOUS", "unnamed"}


def test_a_name_that_is_too_long_to_tell(traffic):
    login = Login("sub", "", frozenset(["alice"]))
    story = Playbook(
        drive(QuotaEngine([]), Ports(), traffic, client_address="::1", max_frame_bytes=2 << 20, login=login)
    )
    begin(story, "PLAIN", 0)
    story.client(message(2, b"\0" + "李".encode() * 50_000 + b"\0secret", 0))
    story.broker_fails(replied(2, b"", 0), reason="not_a_broker", says="李李")
    assert len(told(story, 0).error_message) == 1000


# The name in force is the one that the broker accepted last


def test_a_message_without_a_handshake(strict, traffic):
    """Brokers reject it with error 34; if one took it, nobody would know by which mechanism."""
    begin(strict, "PLAIN")
    step(strict, 2, ALICE, b"")
    step(strict, 3, BOB, b"", 2, ErrorCode.illegal_sasl_state)
    ask(strict)
    assert users(traffic) == {"ANONYMOUS", "alice"}
    strict.client(message(2, BOB))
    strict.broker_fails(replied(2), reason=NO_PRINCIPAL, says="names no user")


def test_a_message_before_any_handshake(strict, traffic):
    strict.client(message(2, ALICE)).to_broker(message(2, ALICE))
    strict.broker_fails(replied(2), reason=NO_PRINCIPAL, says="logins by no mechanism")
    assert users(traffic) == {"ANONYMOUS"}


def test_a_handshake_that_the_broker_rejects_leaves_the_session(strict, traffic):
    """As one within a second of the last: the session goes on, and so does its name."""
    begin(strict, "PLAIN")
    step(strict, 2, ALICE, b"")
    rejected = handshaken(1, 1, ErrorCode.illegal_sasl_state)
    strict.client(handshake(1, "SCRAM-SHA-256")).broker(rejected).to_broker(handshake(1, "SCRAM-SHA-256"))
    strict.to_client(rejected)
    step(strict, 3, MALLORY, b"", 2, ErrorCode.illegal_sasl_state)
    ask(strict)
    assert users(traffic) == {"ANONYMOUS", "alice"}


def test_the_mechanism_is_that_of_the_last_accepted_handshake(strict, traffic):
    """The same bytes name a user by one mechanism, and none by another."""
    begin(strict, "SCRAM-SHA-256")
    begin(strict, "PLAIN")
    step(strict, 2, ALICE, b"")
    ask(strict)
    assert users(traffic) == {"ANONYMOUS", "alice"}


def test_a_handshake_forgets_the_name_before_it(strict, traffic):
    begin(strict, "SCRAM-SHA-256")
    step(strict, 2, FIRST, SERVER_FIRST)
    begin(strict, "SCRAM-SHA-256")
    step(strict, 3, MALLORY, SERVER_FIRST)
    step(strict, 4, FINAL, SERVER_FINAL)
    ask(strict)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


def test_only_the_first_scram_message_names(strict, traffic):
    begin(strict, "SCRAM-SHA-256")
    step(strict, 2, MALLORY, SERVER_FIRST)
    step(strict, 3, FIRST, SERVER_FINAL)
    ask(strict)
    assert users(traffic) == {"ANONYMOUS", "mallory"}


@pytest.mark.parametrize(("before", "after"), [(RAW, 2), (2, RAW), (RAW, RAW)])
def test_bare_messages_and_requests_in_one_connection(strict, traffic, before, after):
    for version, token in ((before, ALICE), (after, BOB)):
        begin(strict, "PLAIN", version)
        step(strict, 2, token, b"", version)
        ask(strict)
    assert users(traffic) == {"ANONYMOUS", "alice", "bob"}


def test_the_first_bare_message_is_never_a_request(story, traffic):
    """Else what follows would be nobody's, although the broker has taken it for a login."""
    begin(story, "MINE", RAW)
    token = opaque(9, METADATA_LIKE)[4:]
    story.client(framed(token)).to_broker(framed(token))
    story.broker(framed(b"\0\0\0\x09")).to_client(framed(b"\0\0\0\x09"))
    ask(story)
    assert users(traffic) == {"ANONYMOUS", "unnamed"}
