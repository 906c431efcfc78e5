"""Requests that the proxy answers itself: no broker hears of them, and their responses take their turn."""

from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.budgets.read_turns import PAUSE_SECONDS
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from proxy.relay.intercepted import MAX_ALTER_QUOTAS_BYTES, MAX_DESCRIBE_BYTES
from proxy.relay.requests.requests import DONE_AT_ONCE, UNSUPPORTED_WEIGHT
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from proxy.wire.api_keys import DESCRIBE_CLIENT_QUOTAS
from tests.support.messages.exchanges import (
    api_versions,
    fetch,
    fetched,
    opaque,
    produce,
    produced,
    responded,
)
from tests.support.stories.playbook import EVERYONE, Playbook, Quotas, new_relay

OWN = 49
MIB = 1 << 20


def story(quotas: Quotas | None = None) -> Playbook:
    return Playbook(new_relay(quotas, intercepted_api_keys=frozenset([OWN])))


def ask(correlation_id: int) -> bytes:
    return opaque(correlation_id, OWN, 1)


def test_an_own_request_is_answered_by_the_proxy() -> None:
    told = story().client(ask(1)).to_broker().to_client().busy()
    assert told.relay.client_muted
    told.own(responded(1)).to_client(responded(1)).to_broker().unmuted().idle()


def test_nothing_behind_it_is_read_before_its_response() -> None:
    told = story().client(ask(1) + produce(2) + ask(3) + fetch(4)).to_broker()
    told.own(responded(1)).to_client(responded(1)).to_broker(produce(2)).busy()
    told.own(responded(3)).to_client().to_broker(fetch(4))
    told.broker(produced(2)).to_client(produced(2), responded(3))
    told.broker(fetched(4)).to_client(fetched(4)).idle()


def test_its_response_waits_for_those_before_it() -> None:
    told = story().client(produce(1) + ask(2)).to_broker(produce(1))
    told.own(responded(2)).to_client().broker(produced(1)).to_client(produced(1), responded(2)).idle()


def test_its_response_waits_for_the_end_of_a_large_one() -> None:
    large = fetched(1, size=2 << 20)
    told = story().client(fetch(1) + ask(2)).broker(large[:9000]).to_client(large[:9000])
    told.own(responded(2)).to_client().broker(large[9000:]).to_client(large[9000:], responded(2)).idle()


def test_a_mute_goes_on_after_its_response() -> None:
    slow = {EVERYONE: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0}}
    told = story(slow).client(fetch(1, max_bytes=1) + ask(2) + opaque(3)).to_broker(fetch(1, max_bytes=1))
    told.broker(fetched(1, size=3000)).to_client(fetched(1, size=3000, throttle_ms=2000))
    told.own(responded(2)).to_client(responded(2)).to_broker().muted(2.0).at(2.0).to_broker(
        opaque(3)
    ).unmuted()


def test_a_drain_waits_for_its_response() -> None:
    told = story().client(ask(1) + produce(2, acks=0)).drain().to_broker().busy()
    told.own(responded(1)).to_client(responded(1)).to_broker(produce(2, acks=0)).idle()


def test_a_request_that_is_too_large_to_be_answered_ends_the_connection() -> None:
    head = opaque(1, OWN, 1, b"")[4:]
    large = (17 << 20).to_bytes(4, "big") + head + bytes(1 << 20)
    story().client_fails(large, reason=CLIENT_PROTOCOL_ERROR, says=str(MAX_ALTER_QUOTAS_BYTES))


def test_a_large_filter_of_quotas_ends_the_connection() -> None:
    """It would be buffered, and copied, only to be rejected."""
    head = opaque(1, DESCRIBE_CLIENT_QUOTAS, 0, b"")[4:]
    told = Playbook(new_relay(intercepted_api_keys=frozenset([DESCRIBE_CLIENT_QUOTAS])))
    large = (MAX_DESCRIBE_BYTES + 1).to_bytes(4, "big") + head + bytes(MAX_DESCRIBE_BYTES)
    told.client_fails(large, reason=CLIENT_PROTOCOL_ERROR, says=str(MAX_DESCRIBE_BYTES))


def test_without_own_apis_the_broker_responses() -> None:
    Playbook(new_relay()).client(ask(1)).to_broker(ask(1)).broker(responded(1)).to_client(responded(1)).idle()


def test_a_flood_that_the_proxy_answers_itself_lets_others_have_their_turn() -> None:
    """Each read from the socket may bring thousands; only a few are answered in one call."""
    at_once = DONE_AT_ONCE // UNSUPPORTED_WEIGHT
    number = 3 * at_once + 2
    responses = [unsupported_api_versions(correlation_id, 0, 4) for correlation_id in range(number)]
    story = Playbook(new_relay()).client(b"".join(api_versions(n) for n in range(number)))
    for at in range(0, 3 * at_once, at_once):
        seconds = at / at_once * PAUSE_SECONDS
        story.at(seconds).to_client(*responses[at : at + at_once]).muted(seconds + PAUSE_SECONDS)
    story.at(4 * PAUSE_SECONDS).to_client(*responses[3 * at_once :]).unmuted().timer(None).idle()


def test_a_flood_that_wants_no_responses_lets_others_have_their_turn() -> None:
    requests = [produce(number, acks=0) for number in range(DONE_AT_ONCE + 1)]
    story = Playbook(new_relay()).client(b"".join(requests)).to_broker(*requests[:-1]).muted(PAUSE_SECONDS)
    story.at(PAUSE_SECONDS).to_broker(requests[-1]).unmuted().idle()


def test_requests_that_await_responses_are_read_without_a_pause() -> None:
    requests = [produce(number) for number in range(2 * DONE_AT_ONCE)]
    Playbook(new_relay()).client(b"".join(requests)).to_broker(*requests).unmuted()


def test_a_drain_answers_a_flood_to_its_end() -> None:
    number = 2 * DONE_AT_ONCE // UNSUPPORTED_WEIGHT
    story = Playbook(new_relay()).client(b"".join(api_versions(n) for n in range(number))).drain()
    story.at(2 * PAUSE_SECONDS).to_client(*(unsupported_api_versions(n, 0, 4) for n in range(number))).idle()


def test_large_requests_of_all_connections_share_memory_until_they_are_answered() -> None:
    """A client would otherwise use 16 MiB on each of hundreds of connections."""
    frames = LargeFrames(5 * MIB)
    one, other = [
        Playbook(new_relay(intercepted_api_keys=frozenset([OWN]), large_frames=frames)) for _ in range(2)
    ]
    large = opaque(1, OWN, body=bytes(3 * MIB))
    one.client(large[: 2 * MIB])
    assert frames.reserved == len(large)
    other.client(large[: 2 * MIB])
    assert other.relay.client_muted
    one.client(large[2 * MIB :]).busy()
    assert frames.reserved == len(large)
    one.own(responded(1)).to_client(responded(1)).to_broker()
    assert frames.reserved == 0
    other.at(10.0)
    assert frames.reserved == len(large)
    other.relay.end()
    assert frames.reserved == 0
