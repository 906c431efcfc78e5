"""What the relay adds to its two directions: timers, drain, and whose fault an error is."""

import gc
from types import FunctionType, ModuleType

import pytest

from proxy.quota.identity import QuotaEntity
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.resources import Resources
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.fetch.gate import FetchGate
from proxy.relay.fetch.grants import FetchGrants
from proxy.relay.frame_buffer import FrameBuffer
from proxy.relay.inflight import FREE_IN_FLIGHT, InFlightRoom
from proxy.relay.record_locks import RecordLocks
from proxy.relay.relay import Relay
from proxy.relay.requests.buffer import RequestBuffer
from proxy.relay.requests.first_wait import FirstWait
from proxy.relay.requests.interception import Interception
from proxy.relay.requests.produce_gate import ProduceGate
from proxy.relay.requests.unnamed_topics import UnnamedTopics
from proxy.relay.responses.withheld_responses import WithheldResponses
from proxy.relay.settings import RelaySettings
from proxy.relay.status import RelayStatus
from proxy.wire.cursor import Cursor
from proxy.wire.reader import Reader
from tests.support.messages.exchanges import TOPIC, fetch, opaque, produce, produced, responded
from tests.support.messages.kio_messages import Ports
from tests.support.messages.old_messages import fetch_request, fetch_response
from tests.support.stories.playbook import EVERYONE, START, drive, engine, new_relay

SLOW = {EVERYONE: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0}}


def test_a_new_relay_has_nothing_to_do() -> None:
    relay = new_relay()
    assert (relay.client_muted, relay.next_timer) == (False, 0.0)
    assert (relay.take_to_client(), relay.take_to_broker(), relay.take_intercepted()) == ([], [], [])
    relay.handle_timer(START)
    relay.drain(START)
    assert relay.status.idle


def test_requests_whose_responses_are_read_late_take_room_until_both_sides_are_closed() -> None:
    room = InFlightRoom()
    limits = engine({}, resources=Resources({TOPIC: {PRODUCER_BYTE_RATE.name: "1000000"}}))
    relay = drive(limits, Ports(), Traffic(), in_flight_room=room).relay
    for number in range(int(FREE_IN_FLIGHT) + 5):
        relay.receive_from_client(produce(number, size=200), START + number)
    relay.end()
    assert (relay.awaits_late, room.taken) == (True, 5)
    relay.receive_late(produced(0), START)
    assert room.taken == 4
    relay.part()
    assert room.taken == 0


def owned(relay: Relay) -> list[object]:
    """The objects that a relay refers to, its own and shared ones."""
    found: dict[int, object] = {}
    left: list[object] = [relay]
    while left:
        each = left.pop()
        if id(each) not in found and not isinstance(each, type | ModuleType | FunctionType):
            found[id(each)] = each
            left.extend(gc.get_referents(each))
    return list(found.values())


@pytest.mark.parametrize("quotas", [None, SLOW])
def test_an_idle_connection_has_no_objects_that_it_has_not_needed(
    quotas: dict[QuotaEntity, dict[str, float]] | None,
) -> None:
    relay = new_relay(quotas)
    relay.receive_from_client(produce(1), START)
    relay.receive_from_broker(produced(1), START)
    assert relay.status.idle
    types = {type(each) for each in owned(relay.relay)}
    assert types >= {Relay, InFlightRoom}
    assert not types & {FrameBuffer, RecordLocks, RelayStatus}
    assert not types & {FetchGate, FetchGrants, FirstWait, IdBudget, Interception}
    assert not types & {ProduceGate, RequestBuffer, UnnamedTopics, WithheldResponses}


def test_the_connections_of_a_listener_share_what_reads_whole_messages() -> None:
    settings = RelaySettings(max_frame_bytes=1 << 20)
    one, other = (
        Relay(engine({}), Ports(), Traffic(), settings, principal="u", client_address="127.0.0.1")
        for _ in range(2)
    )
    others = {id(each) for each in owned(other)}
    own = {type(each) for each in owned(one) if id(each) not in others}
    assert Relay in own
    assert not own & {BrokerErrors, Cursor, Reader}


def test_what_is_taken_is_gone() -> None:
    relay = new_relay()
    relay.receive_from_client(produce(1), START)
    assert b"".join(relay.take_to_broker()) == produce(1)
    assert relay.take_to_broker() == []
    relay.receive_from_broker(produced(1), START)
    assert b"".join(relay.take_to_client()) == produced(1)
    assert relay.take_to_client() == []


def test_the_next_timer_is_the_earlier_of_the_mute_and_the_hold() -> None:
    relay = new_relay(SLOW)
    omitted_fetch = fetch_request(0, 1, {"t": {0: 100}})
    relay.receive_from_client(omitted_fetch + produce(2, size=6000), START)
    assert relay.next_timer == START + 5.0
    relay.receive_from_broker(fetch_response(0, 1, {"t": {0: bytes(3000)}}), START)
    hold = relay.next_timer
    assert START + 2.0 < hold < START + 3.0
    relay.handle_timer(hold - 0.001)
    assert relay.take_to_client() == []
    relay.handle_timer(hold)
    assert len(b"".join(relay.take_to_client())) > 3000
    assert (relay.next_timer, relay.client_muted) == (START + 5.0, True)
    relay.handle_timer(START + 5.0)
    assert (relay.next_timer, relay.client_muted) == (0.0, False)


def test_a_late_timer_does_all_that_was_due() -> None:
    relay = new_relay(SLOW)
    relay.receive_from_client(produce(1, size=2000, version=0) + fetch(2, max_bytes=1), START)
    relay.receive_from_broker(produced(1, version=0), START)
    relay.take_to_broker()
    relay.handle_timer(START + 100.0)
    assert b"".join(relay.take_to_client()) == produced(1, version=0)
    assert b"".join(relay.take_to_broker()) == fetch(2, max_bytes=1)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1", opaque(1, 0, 99)])
def test_the_client_is_to_blame_for_its_bytes(data: bytes) -> None:
    with pytest.raises(RelayError) as caught:
        new_relay().receive_from_client(data, START)
    assert caught.value.reason == CLIENT_PROTOCOL_ERROR


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", responded(1)])
def test_the_broker_is_to_blame_for_its_own(data: bytes) -> None:
    with pytest.raises(RelayError) as caught:
        new_relay().receive_from_broker(data, START)
    assert caught.value.reason == BROKER_PROTOCOL_ERROR


def test_the_client_is_to_blame_for_what_is_read_when_the_broker_has_responded() -> None:
    relay = new_relay(intercepted_api_keys=frozenset([42]))
    relay.receive_from_client(opaque(1, 42) + opaque(2, 0, 99), START)
    (own,) = relay.take_intercepted()
    with pytest.raises(RelayError) as caught:
        relay.answer(own.exchange, responded(1), START)
    assert caught.value.reason == CLIENT_PROTOCOL_ERROR
