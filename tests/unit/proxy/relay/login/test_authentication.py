"""Logins pass unchanged, and the requests after a login are those of its user."""

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.usage import UsageLedger
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.relay.login.authentication import Login
from proxy.wire.api_keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from tests.support.messages.exchanges import opaque, responded
from tests.support.messages.kio_messages import framed
from tests.support.messages.logins import RAW, handshake, handshaken, message, replied
from tests.support.stories.logging_in import (
    ALICE,
    BOB,
    FINAL,
    FIRST,
    INTERCEPTED,
    METADATA_LIKE,
    SERVER_FINAL,
    SERVER_FIRST,
    UNNAMED,
    VERSIONS,
    before_login,
    begin,
    local_response,
    login_story,
    request,
    step,
    users,
)
from tests.support.stories.playbook import Playbook

LATER = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


@pytest.fixture
def story(traffic: Traffic) -> Playbook:
    return login_story(traffic, UNNAMED)


@LATER
def test_plain(story: Playbook, traffic: Traffic, version: int) -> None:
    begin(story, "PLAIN", version)
    step(story, 2, ALICE, b"", version)
    assert users(traffic) <= {"ANONYMOUS"}
    request(story)
    assert "alice" in users(traffic)


@LATER
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_is_over_with_the_server_s_last_message(
    story: Playbook, traffic: Traffic, mechanism: str, version: int
) -> None:
    begin(story, mechanism, version)
    step(story, 2, FIRST, SERVER_FIRST, version)
    story.client(message(3, FINAL, version)).to_broker(message(3, FINAL, version))
    assert users(traffic) <= {"ANONYMOUS"}
    story.broker(replied(3, SERVER_FINAL, version)).to_client(replied(3, SERVER_FINAL, version))
    request(story)
    assert "alice" in users(traffic)


@LATER
def test_a_rejected_token_comes_with_error_code_0_first(
    story: Playbook, traffic: Traffic, version: int
) -> None:
    begin(story, "OAUTHBEARER", version)
    step(story, 2, b"n,,\x01auth=Bearer e30.eyJzdWIiOiJhbGljZSJ9.\x01\x01", b'{"status":"no"}', version)
    if version == RAW:
        story.client(message(3, b"\x01", version))
        story.relay.end()
    else:
        step(story, 3, b"\x01", b"", version, ErrorCode.sasl_authentication_failed)
        before_login(story)
    assert users(traffic) <= {"ANONYMOUS"}
    assert traffic.failed_logins == {("OAUTHBEARER", "::1"): 1}


@LATER
def test_a_token_that_is_taken(story: Playbook, traffic: Traffic, version: int) -> None:
    begin(story, "OAUTHBEARER", version)
    step(story, 2, b"n,,\x01auth=Bearer e30.eyJzdWIiOiJhbGljZSJ9.\x01\x01", b"", version)
    request(story)
    assert "alice" in users(traffic)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_wrong_password_is_counted_and_names_nobody(
    story: Playbook, traffic: Traffic, version: int
) -> None:
    begin(story, "PLAIN", version)
    step(story, 2, ALICE, b"", version, ErrorCode.sasl_authentication_failed)
    before_login(story)
    assert users(traffic) == {"ANONYMOUS"}
    assert traffic.failed_logins == {("PLAIN", "::1"): 1}
    assert traffic.broker_errors == {(-1, SASL_AUTHENTICATE, ErrorCode.sasl_authentication_failed): 1}


def test_a_wrong_password_amid_bare_messages_is_a_connection_that_ends(
    story: Playbook, traffic: Traffic
) -> None:
    begin(story, "PLAIN", RAW)
    story.client(message(2, ALICE, RAW))
    story.relay.end()
    assert traffic.failed_logins == {("PLAIN", "::1"): 1}


def test_an_unknown_mechanism(story: Playbook, traffic: Traffic) -> None:
    rejected = handshaken(1, 1, ErrorCode.unsupported_sasl_mechanism)
    story.client(handshake(1, "MINE")).to_broker(handshake(1, "MINE")).broker(rejected).to_client(rejected)
    assert traffic.failed_logins == {("other", "::1"): 1}
    assert traffic.broker_errors == {(-1, SASL_HANDSHAKE, ErrorCode.unsupported_sasl_mechanism): 1}


def test_what_is_sent_along_with_a_right_password_is_the_user_s(story: Playbook, traffic: Traffic) -> None:
    begin(story, "PLAIN")
    story.client(message(2, ALICE) + opaque(3, METADATA_LIKE)).to_broker(message(2, ALICE))
    assert story.relay.client_muted
    story.broker(replied(2)).to_client(replied(2)).to_broker(opaque(3, METADATA_LIKE))
    assert [user for user, _ in traffic.clients] == ["ANONYMOUS", "ANONYMOUS", "alice"]
    assert traffic.clients["alice", "client"].bytes_in == len(opaque(3, METADATA_LIKE))


def test_what_is_sent_along_with_a_wrong_one_is_nobody_s(story: Playbook, traffic: Traffic) -> None:
    begin(story, "PLAIN")
    story.client(message(2, ALICE) + opaque(3, METADATA_LIKE))
    response = replied(2, error=ErrorCode.sasl_authentication_failed)
    story.broker_fails(response, reason=CLIENT_PROTOCOL_ERROR, says="DeleteGroups before the login")
    assert b"".join(story.relay.take_to_client()) == response
    assert users(traffic) == {"ANONYMOUS"}


@pytest.mark.parametrize(
    ("error", "failures"), [(ErrorCode.illegal_sasl_state, 0), (ErrorCode.sasl_authentication_failed, 1)]
)
def test_another_login_that_is_rejected_changes_nothing(
    story: Playbook, traffic: Traffic, error: ErrorCode, failures: int
) -> None:
    begin(story, "PLAIN")
    step(story, 2, ALICE, b"")
    begin(story, "PLAIN")
    step(story, 4, BOB, b"", 2, error)
    request(story)
    assert users(traffic) == {"ANONYMOUS", "alice"}
    assert len(traffic.failed_logins) == failures


def test_another_login_that_is_taken(story: Playbook, traffic: Traffic) -> None:
    begin(story, "PLAIN")
    step(story, 2, ALICE, b"")
    begin(story, "SCRAM-SHA-256")
    step(story, 3, b"n,,n=bob,r=abc", SERVER_FIRST)
    users_before = users(traffic)
    step(story, 4, FINAL, SERVER_FINAL)
    request(story)
    assert "bob" not in users_before
    assert "bob" in users(traffic)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "MINE"])
def test_a_mechanism_that_nobody_reads(story: Playbook, traffic: Traffic, mechanism: str) -> None:
    begin(story, mechanism)
    step(story, 2, ALICE, b"challenge")
    step(story, 3, b"more", b"")
    request(story)
    assert users(traffic) == {"ANONYMOUS", "unnamed"}


def test_bare_messages_of_a_mechanism_that_nobody_reads(story: Playbook, traffic: Traffic) -> None:
    begin(story, "GSSAPI", RAW)
    for token in (b"\x60\x82\x01\x02init", b"", b"\x05\x04\x05\xffwrapped-token"):
        step(story, 0, token, b"\x60final", RAW)
    request(story)
    assert users(traffic) == {"ANONYMOUS", "unnamed"}
    request(story, 51)


@pytest.mark.parametrize("api_key", [0, 3, INTERCEPTED, METADATA_LIKE])
def test_before_the_login_the_relay_forwards_only_what_a_broker_serves(
    traffic: Traffic, api_key: int
) -> None:
    """In each state: no handshake, a handshake, an open login, a login that the broker has rejected."""
    for steps in range(4):
        story = login_story(traffic, UNNAMED)
        if steps > 0:
            begin(story, "SCRAM-SHA-256")
        if steps > 1:
            error = ErrorCode.none if steps == 2 else ErrorCode.sasl_authentication_failed
            step(story, 2, FIRST, SERVER_FIRST, error=error)
        asked = opaque(60, api_key)
        story.client_fails(asked, reason=CLIENT_PROTOCOL_ERROR, says="before the login")
        story.to_broker()
    assert users(traffic) <= {"ANONYMOUS"}


def test_a_client_may_ask_for_versions_before_the_login(story: Playbook) -> None:
    story.client(opaque(60, API_VERSIONS, 1)).to_broker(opaque(60, API_VERSIONS, 1))


def test_the_proxy_answers_after_the_login(story: Playbook) -> None:
    begin(story, "PLAIN")
    step(story, 2, ALICE, b"")
    story.client(opaque(60, INTERCEPTED)).to_broker().own(responded(60)).to_client(responded(60))


def test_a_message_in_pieces(story: Playbook, traffic: Traffic) -> None:
    begin(story, "PLAIN")
    whole, response = message(2, ALICE), replied(2)
    story.client(*(whole[at : at + 1] for at in range(len(whole)))).to_broker(whole)
    story.broker(*(response[at : at + 1] for at in range(len(response)))).to_client(response)
    request(story)
    assert "alice" in users(traffic)


def test_a_message_that_is_too_large(story: Playbook) -> None:
    begin(story, "PLAIN")
    story.client_fails(
        message(2, bytes(3 << 19))[: 5 << 18], reason=CLIENT_PROTOCOL_ERROR, says="a message of a login"
    )


def test_a_response_that_is_too_large(story: Playbook) -> None:
    begin(story, "PLAIN")
    story.client(message(2, ALICE))
    story.broker_fails(
        replied(2, bytes(3 << 19))[: 5 << 18],
        reason=BROKER_PROTOCOL_ERROR,
        says="the response to a message of a login",
    )


@LATER
def test_the_bytes_of_a_login_are_in_the_client_s_usage(version: int) -> None:
    ledger = UsageLedger()
    story = login_story(Traffic(usage=ledger), UNNAMED)
    begin(story, "SCRAM-SHA-256", version)
    step(story, 2, FIRST, SERVER_FIRST, version)
    counted = {
        (usage.user, usage.api_key): usage.tally.bytes_out
        for client in ledger.close_interval()
        for usage in client.take()
    }
    assert counted["ANONYMOUS", SASL_HANDSHAKE] == len(handshaken(1, 0 if version == RAW else 1))
    assert counted["ANONYMOUS", SASL_AUTHENTICATE] == len(replied(2, SERVER_FIRST, version))


def test_a_version_that_nobody_knows(story: Playbook) -> None:
    frame = framed(b"\0\x24\0\x09\0\0\0\x01\xff\xff")
    story.client_fails(frame, reason=CLIENT_PROTOCOL_ERROR, says="SaslAuthenticate v9 is not supported")


@pytest.mark.parametrize(("user", "served"), [("alice", True), ("bob", False)])
def test_where_only_some_are_served(traffic: Traffic, user: str, served: bool) -> None:
    login = Login("sub", "unnamed", frozenset(["alice"]))
    story = login_story(traffic, login)
    begin(story, "PLAIN")
    story.client(message(2, f"\0{user}\0secret".encode()))
    if served:
        story.broker(replied(2)).to_client(replied(2))
    else:
        story.broker_fails(replied(2), reason="not_a_broker", says="bob has logged in, which is none of")
        assert local_response(story).error_code is ErrorCode.sasl_authentication_failed


def test_where_logins_are_not_watched_they_pass(traffic: Traffic) -> None:
    story = login_story(traffic, None)
    begin(story, "PLAIN")
    step(story, 2, ALICE, b"")
    request(story)
    assert users(traffic) == {"ANONYMOUS"}
