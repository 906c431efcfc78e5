"""Logins in any order and of any outcome: requests are whose login the broker agreed to last; whatever bytes
come, nothing but RelayError.
"""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.login.authentication import Login
from proxy.relay.login.sasl import READABLE
from tests.support.messages.exchanges import opaque, responded
from tests.support.messages.kio_messages import Ports, framed
from tests.support.messages.login_messages import name_in, oauthbearer, plain, scram
from tests.support.messages.logins import RAW, handshake, handshaken, message, replied
from tests.support.stories.playbook import START, RelayDriver, drive

TOKENS: dict[str, Callable[[str], tuple[bytes, ...]]] = {
    "PLAIN": lambda user: (f"\0{user}\0secret".encode(),),
    "SCRAM-SHA-256": lambda user: (f"n,,n={user},r=abc".encode(), b"c=biws,r=abc,p=proof"),
}
LAST = {"PLAIN": b"", "SCRAM-SHA-256": b"v=signature"}
BETWEEN = b"r=abcdef,s=salt,i=4096"
OUTCOMES = [ErrorCode.none, ErrorCode.sasl_authentication_failed, ErrorCode.illegal_sasl_state]
ATTEMPT = st.tuples(
    st.sampled_from(sorted(TOKENS)), st.sampled_from(["alice", "bob"]), st.sampled_from(OUTCOMES)
)
FRAMES = [
    handshake(1, "PLAIN"),
    handshake(1, "GSSAPI", 0),
    *(message(2, b"\0alice\0secret", version) for version in (0, 1, 2, RAW)),
]
RESPONSES = [
    handshaken(1),
    handshaken(1, 0),
    *(replied(2, b"token", version) for version in (0, 1, 2, RAW)),
    replied(2, error=ErrorCode.sasl_authentication_failed),
]


def relay_of(traffic: Traffic) -> RelayDriver:
    return drive(
        QuotaEngine([]),
        Ports(),
        traffic,
        client_address="::1",
        max_frame_bytes=1 << 20,
        login=Login("sub", "x"),
    )


def attempt(relay: RelayDriver, mechanism: str, user: str, outcome: ErrorCode, pipelined: bytes) -> None:
    """A login, with what its client sends along with the last message."""
    relay.receive_from_client(handshake(1, mechanism), START)
    relay.receive_from_broker(handshaken(1), START)
    *first, last = TOKENS[mechanism](user)
    for token in first:
        relay.receive_from_client(message(2, token), START)
        relay.receive_from_broker(replied(2, BETWEEN), START)
    relay.receive_from_client(message(3, last) + pipelined, START)
    token = LAST[mechanism] if outcome is ErrorCode.none else b""
    relay.receive_from_broker(replied(3, token, 2, outcome), START)


@given(st.lists(ATTEMPT, max_size=6))
@settings(max_examples=100)
def test_requests_are_whose_login_was_agreed_to_last(attempts: list[tuple[str, str, ErrorCode]]) -> None:
    traffic = Traffic()
    relay = relay_of(traffic)
    who = "carol"
    attempt(relay, "PLAIN", who, ErrorCode.none, b"")
    request = opaque(9, 42)
    for mechanism, user, outcome in attempts:
        who = user if outcome is ErrorCode.none else who
        counters = traffic.client(who, "client")
        before = counters.bytes_in
        attempt(relay, mechanism, user, outcome, request)
        assert counters.bytes_in >= before + len(request)
        relay.receive_from_broker(responded(9), START)
        before = counters.bytes_in
        relay.receive_from_client(request, START)
        relay.receive_from_broker(responded(9), START)
        assert counters.bytes_in == before + len(request)
    assert {user for user, _ in traffic.clients} <= {
        "ANONYMOUS",
        "carol",
        who,
        *(user for _, user, _ in attempts),
    }
    assert relay.status.idle


@pytest.mark.parametrize("frame", FRAMES)
def test_damaged_messages(frame: bytes) -> None:
    for at in range(4, len(frame)):
        for bad in (frame[:at], frame[:at] + b"\xff" + frame[at + 1 :], frame[:at] + b"\x7f" + frame[at:]):
            relay = relay_of(Traffic())
            _only_relay_errors(relay.receive_from_client, framed(bad[4:]))


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("frame", FRAMES)
def test_damaged_responses(frame: bytes, response: bytes) -> None:
    for at in range(4, len(response)):
        for bad in (response[:at], response[:at] + b"\xff" + response[at + 1 :], response):
            relay = relay_of(Traffic())
            _only_relay_errors(relay.receive_from_client, frame)
            _only_relay_errors(relay.receive_from_broker, framed(bad[4:]))


@given(st.sampled_from(READABLE), st.binary(max_size=60), st.integers(0, 1 << 30))
@settings(max_examples=300)
def test_a_name_is_a_text_that_can_be_written(mechanism: str, raw: bytes, seed: int) -> None:
    random = Random(seed)
    for token in (raw, plain(random), scram(random), oauthbearer(random)):
        name_in(mechanism, token, "sub").encode()


@given(
    st.lists(st.tuples(st.booleans(), st.one_of(st.binary(max_size=40), st.sampled_from(FRAMES + RESPONSES))))
)
@settings(max_examples=200)
def test_whatever_comes(events: list[tuple[bool, bytes]]) -> None:
    relay = relay_of(Traffic())
    try:
        for from_client, data in events:
            (relay.receive_from_client if from_client else relay.receive_from_broker)(data, START)
    except RelayError:
        pass
    relay.end()


def _only_relay_errors(call: Callable[[bytes, float], None], data: bytes) -> None:
    try:
        call(data, START)
    except RelayError:
        return
