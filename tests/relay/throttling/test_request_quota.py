"""The request quota: what each request took the broker, charged on its response, whoever reads it."""

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.inflight import LOCAL_SECONDS
from proxy.relay.login.authentication import Login
from proxy.relay.requests.requests import FREE_AT_MOST
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from tests.support.messages.exchanges import (
    TOPIC,
    api_versions,
    fetch,
    fetched,
    opaque,
    produce,
    produced,
    responded,
)
from tests.support.messages.kio_messages import Ports
from tests.support.messages.logins import handshake, handshaken, message, replied
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.logging_in import ALICE, STRICT, begin, step
from tests.support.stories.playbook import (
    EVERYONE,
    START,
    Playbook,
    Quotas,
    drive,
    engine,
    new_relay,
)

TENTH = {EVERYONE: {"request_percentage": 10.0}}
"""One tenth of a second at once, then a tenth of the time."""


def story(quotas: Quotas | None = None) -> Playbook:
    return Playbook(new_relay(quotas or TENTH))


def test_the_time_until_the_response_is_charged_and_announced() -> None:
    told = story().client(produce(1)).to_broker(produce(1)).unmuted()
    told.at(0.15).broker(produced(1)).to_client(produced(1, throttle_ms=500)).muted(0.65)
    told.at(0.65).unmuted().idle()


def test_time_is_charged_by_the_clock_of_the_events() -> None:
    limits = engine(TENTH)
    told = Playbook(drive(limits, Ports(), Traffic())).client(produce(1)).to_broker(produce(1))
    told.relay.note_event(START + 0.0003)
    told.client(produce(2)).to_broker(produce(2)).broker(produced(1)).to_client(produced(1))
    told.relay.note_event(START + 0.0008)
    told.broker(produced(2)).to_client(produced(2))
    [bucket] = live_buckets(limits)
    # In percent-seconds: the first took the broker from `now` on, the second from then on.
    assert bucket.used == pytest.approx(0.03 + 0.05)


def test_within_the_share_nothing_happens() -> None:
    told = story().client(produce(1)).to_broker(produce(1))
    told.at(0.09).broker(produced(1)).to_client(produced(1)).unmuted()


def test_the_time_until_the_broker_is_reached_is_not_the_requests() -> None:
    told = story().client(produce(1)).to_broker(produce(1))
    told.at(4).broker_reached().at(4.09).broker(produced(1)).to_client(produced(1)).unmuted()


def test_no_wait_is_longer_than_a_window() -> None:
    told = story().client(produce(1)).to_broker(produce(1))
    told.at(30).broker(produced(1)).to_client(produced(1, throttle_ms=1000)).muted(31)


def test_a_request_is_on_the_brokers_desk_when_the_response_before_it_has_come() -> None:
    told = story().client(produce(1) + produce(2) + produce(3)).to_broker(produce(1), produce(2), produce(3))
    told.at(0.06).broker(produced(1)).to_client(produced(1))
    told.at(0.1).broker(produced(2)).to_client(produced(2)).unmuted()
    told.at(0.15).broker(produced(3)).to_client(produced(3, throttle_ms=410)).muted(0.56)


def test_a_response_in_parts_ends_with_its_last_part() -> None:
    told = story().client(opaque(1) + produce(2)).to_broker(opaque(1), produce(2))
    whole = responded(1, bytes(2 << 20))
    told.at(0.05).broker(whole[:5000]).to_client(whole[:5000])
    told.at(0.9).broker(whole[5000:]).to_client(whole[5000:]).unmuted()
    told.at(0.99).broker(produced(2)).to_client(produced(2)).unmuted()


def test_the_proxys_own_work_is_charged_as_the_brokers() -> None:
    """AlterClientQuotas, for example: no broker works on it."""
    own = 49
    told = Playbook(new_relay(TENTH, intercepted_api_keys=frozenset([own])))
    for number, muted in ((1, None), (2, 0.6)):
        told.client(opaque(number, own, 1))
        (asked,) = told.relay.take_intercepted()
        told.relay.charge_work(asked.exchange, 0.08, START)
        told.relay.answer(asked.exchange, responded(number), START)
        told.to_client(responded(number)).to_broker()
        if muted is None:
            told.unmuted()
        else:
            told.muted(muted)


def test_a_request_in_parts_begins_with_its_last_part() -> None:
    whole = produce(1, size=2 << 20)
    told = story().client(whole[:-10]).to_broker(whole[:-10])
    told.at(5).client(whole[-10:]).to_broker(whole[-10:])
    told.at(5.09).broker(produced(1)).to_client(produced(1)).unmuted()


def test_a_response_before_the_end_of_its_request_is_not_charged() -> None:
    whole = produce(1, size=2 << 20)
    told = story().client(whole[:-10]).to_broker(whole[:-10])
    told.at(5).broker(produced(1)).to_client(produced(1)).unmuted()


@pytest.mark.parametrize("api_key", [2, 4, 11, 12, 22, 27, 68, 84, 99])
def test_what_the_proxy_does_not_read_is_charged_and_mutes(api_key: int) -> None:
    """27 and 84 are WriteTxnMarkers and ReadShareGroupState, which only brokers send."""
    slow = 0.5 if api_key != 11 else 5.0
    asked, response = opaque(1, api_key, 2), responded(1)
    told = story().client(asked).to_broker(asked).at(slow).broker(response).to_client(response)
    if api_key == 11:
        told.unmuted()  # JoinGroup waits for the other members, which is not the broker's work.
    else:
        told.muted(slow + 1.0).client(asked).to_broker()
        told.at(slow + 1.0).to_broker(asked)


def waiting(correlation_id: int, throttle_ms: int, flexible: bool, more: int = 20) -> bytes:
    """A response that begins with throttle_time_ms, after the tags of a flexible header."""
    return responded(correlation_id, bytes(flexible) + throttle_ms.to_bytes(4, "big") + bytes(more))


@pytest.mark.parametrize(
    ("api_key", "version", "flexible"),
    [(12, 3, False), (12, 4, True), (22, 1, False), (22, 6, True), (68, 1, True), (72, 0, True)],
)
def test_what_the_proxy_does_not_read_announces_the_wait(api_key: int, version: int, flexible: bool) -> None:
    """Heartbeat, InitProducerId, ConsumerGroupHeartbeat, PushTelemetry."""
    empty = bytes(40)
    told = story().client(opaque(1, api_key, version, empty)).at(0.15)
    told.broker(waiting(1, 0, flexible)).to_client(waiting(1, 500, flexible)).muted(0.65)
    told.at(9).client(opaque(2, api_key, version, empty)).at(9.09)
    told.broker(waiting(2, 0, flexible)).to_client(waiting(2, 0, flexible)).unmuted()


def test_a_large_response_that_the_proxy_does_not_read_announces_the_wait() -> None:
    large = 2 << 20
    whole, announced = waiting(1, 0, True, large), waiting(1, 500, True, large)
    told = story().client(opaque(1, 15, 6, bytes(8))).at(0.15)
    told.broker(whole[:5000]).to_client(announced[:5000]).muted(0.65)
    told.broker(whole[5000:]).to_client(announced[5000:])


def test_a_local_response_announces_the_wait() -> None:
    """DescribeClientQuotas: the wait for the work of the broker, and of the proxy."""
    own = 48
    told = Playbook(new_relay(TENTH, intercepted_api_keys=frozenset([own])))
    told.client(opaque(1, own, 1))
    (asked,) = told.relay.take_intercepted()
    told.relay.charge_work(asked.exchange, 0.15, START)
    told.relay.answer(asked.exchange, waiting(1, 0, True), START)
    told.to_client(waiting(1, 500, True)).muted(0.5)


def test_a_large_response_that_the_proxy_does_not_read_mutes_when_it_begins() -> None:
    whole = responded(1, bytes(2 << 20))
    told = story().client(opaque(1)).to_broker(opaque(1))
    told.at(0.15).broker(whole[:5000]).to_client(whole[:5000]).muted(0.65)
    told.at(0.3).broker(whole[5000:]).to_client(whole[5000:]).muted(0.65)


def test_who_cannot_be_told_gets_the_response_after_the_wait() -> None:
    asked, response = produce(1, version=0), produced(1, version=0)
    told = story().client(asked).to_broker(asked).at(0.15).broker(response).to_client()
    told.at(0.65).to_client(response).unmuted()


@pytest.mark.parametrize("version", [0, 7, 9])
def test_what_has_no_response_is_not_charged(version: int) -> None:
    asked = produce(1, version=version, acks=0)
    told = story().client(asked).to_broker(asked).at(50).unmuted()
    told.client(produce(2)).to_broker(produce(2))
    told.at(50.1).broker(produced(2)).to_client(produced(2)).unmuted()


@pytest.mark.parametrize("version", [4, 7, 11, 12, 14, 15, 18])
def test_the_wait_that_a_fetch_asked_for_is_not_charged(version: int) -> None:
    """Its max_wait_ms is 500."""
    asked = fetch(1, version=version)
    told = story().client(asked).to_broker(asked)
    records = fetched(1, 5000, version=version)
    told.at(0.59).broker(records).to_client(records).unmuted()
    told.at(9).client(asked).to_broker(asked)
    told.at(9.65).broker(records)
    # 1 ms, and 10 us for each partition for which the request has room
    least = 33 if version >= 12 else 28 if version >= 11 else 24 if version >= 5 else 16
    wait = 0.51 + (len(asked) - 4) // least * 0.0001
    told.to_client(fetched(1, 5000, version=version, throttle_ms=511)).muted(9.65 + wait)


@pytest.mark.parametrize("version", [4, 7, 11, 12, 14, 15, 18])
def test_a_late_response_without_records_costs_little(version: int) -> None:
    asked = fetch(1, version=version)
    limits = engine(TENTH)
    told = Playbook(drive(limits, Ports(), Traffic())).client(asked).to_broker(asked)
    told.at(0.9).broker(fetched(1, 100, version=version)).unmuted()
    (used,) = [bucket.used for bucket in live_buckets(limits) if bucket.quota == "request_percentage"]
    assert 0.1 <= used <= 0.15


def test_the_longest_of_all_waits_is_announced() -> None:
    quotas = {EVERYONE: {"request_percentage": 10.0, "producer_byte_rate": 1000.0}}
    large, small = produce(1, size=1500), produce(1, size=500)
    told = story(quotas).client(large).to_broker(large).muted(0.5)
    told.at(0.125).broker(produced(1, throttle_ms=100)).to_client(produced(1, throttle_ms=375)).muted(0.5)
    told.at(9).client(small).to_broker(small).unmuted()
    told.at(9.125).broker(produced(1, throttle_ms=100)).to_client(produced(1, throttle_ms=250)).muted(9.375)
    told.at(20).client(small).to_broker(small)
    told.at(20.125).broker(produced(1, throttle_ms=300)).to_client(produced(1, throttle_ms=300)).muted(20.375)


def test_the_quota_applies_from_the_next_request_on() -> None:
    quotas = engine({})
    relay = drive(quotas, Ports(), Traffic())
    told = Playbook(relay).client(opaque(1)).to_broker(opaque(1))
    quotas.configure(Limits(TENTH), START)
    told.at(5).broker(responded(1)).to_client(responded(1)).unmuted()
    told.client(opaque(2)).to_broker(opaque(2)).at(10).broker(responded(2)).to_client(responded(2)).muted(11)


GROUP_APIS = [8, 9, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69, 76, 77, 88, 89, 90, 91, 92]
"""From OffsetCommit to LeaveGroup, ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat, and
what describes and changes groups.
"""


@pytest.mark.parametrize("api_key", GROUP_APIS)
def test_a_flood_of_requests_of_a_group_gets_its_share(api_key: int) -> None:
    """Each takes the broker 2 ms; the client sends the next one as soon as it is read from."""
    relay, now, busy, number = new_relay(TENTH), START, 0.0, 0
    while now < START + 20.0:
        if relay.client_muted:
            now = relay.next_timer
            relay.handle_timer(now)
            continue
        number += 1
        relay.receive_from_client(opaque(number, api_key, 0, bytes(8)), now)
        assert relay.take_to_broker()
        now += 0.002
        busy += 0.002
        relay.receive_from_broker(responded(number), now)
        relay.take_to_client()
    assert 1.9 < busy <= 0.1 * (20.0 + 1.0) + 0.002


def test_a_flood_of_local_responses_gets_its_share() -> None:
    """No broker works on them: the proxy itself responds to an unknown version of ApiVersions."""
    relay, now, number = new_relay(TENTH), START, 0
    while now < START + 20.0:
        if relay.client_muted:
            now = max(now, relay.next_timer)
            relay.handle_timer(now)
            continue
        number += 1
        relay.receive_from_client(api_versions(number), now)
        assert relay.take_to_client()
        assert not relay.take_to_broker()
    assert 1.9 < number * LOCAL_SECONDS <= 0.1 * (20.0 + 1.0) + LOCAL_SECONDS


LITTLE = {"request_percentage": 0.001}
"""One local response exceeds it."""


def test_a_rejected_request_costs_request_time() -> None:
    rejecting = {PRODUCER_BYTE_RATE.name: "1", PRODUCER_BYTE_RATE_ACTION.name: REJECT}
    told = Playbook(new_relay({EVERYONE: LITTLE}, resources=Resources({TOPIC: rejecting})))
    told.client(produce(1, size=200)).to_broker(produce(1, size=200)).broker(produced(1)).at(1.0)
    told.client(produce(2, size=200)).to_broker().muted(2.0)


def test_a_fetch_that_the_proxy_answers_costs_request_time() -> None:
    limits = engine({EVERYONE: {**TENTH[EVERYONE], "consumer_byte_rate": 1000.0}})
    one, other = (Playbook(drive(limits, Ports(), Traffic())) for _ in range(2))
    one.client(fetch(1)).broker(fetched(1, size=5000))
    other.client(fetch(1)).at(0.5).to_broker()
    assert other.relay.take_to_client()
    (used,) = [bucket.used for bucket in live_buckets(limits) if bucket.quota == "request_percentage"]
    assert used == pytest.approx(100.0 * LOCAL_SECONDS, rel=0.2)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_flood_of_logins_after_the_login_gets_its_share(mechanism: str) -> None:
    """A broker responds with ILLEGAL_SASL_STATE to any number of them, and the session goes on."""
    relay = drive(engine(TENTH), Ports(), Traffic(), login=STRICT)
    told = Playbook(relay)
    begin(told, "PLAIN")
    step(told, 2, ALICE, b"")
    told.unmuted()
    now, number = START, 2
    while now < START + 20.0:
        if relay.client_muted:
            now = max(now, relay.next_timer)
            relay.handle_timer(now)
            continue
        number += 1
        asked = handshake(number, mechanism) if number % 2 else message(number, b"x")
        relay.receive_from_client(asked, now)
        assert relay.take_to_broker()
        illegal = ErrorCode.illegal_sasl_state
        rejected = handshaken(number, 1, illegal) if number % 2 else replied(number, b"", 2, illegal)
        relay.receive_from_broker(rejected, now)
        assert b"".join(relay.take_to_client()) == rejected
    assert 1.9 < (number - 2) * LOCAL_SECONDS <= 0.1 * (20.0 + 1.0) + LOCAL_SECONDS


def test_a_login_that_the_proxy_does_not_know_costs_little() -> None:
    """A broker delays its response to a failed login."""
    limits = engine(TENTH)
    told = Playbook(drive(limits, Ports(), Traffic()))
    told.client(handshake(1, "PLAIN")).at(0.5).broker(handshaken(1)).unmuted()
    (used,) = [bucket.used for bucket in live_buckets(limits) if bucket.quota == "request_percentage"]
    assert used == pytest.approx(100.0 * LOCAL_SECONDS, rel=0.2)


def test_unknown_versions_before_the_login_are_bounded() -> None:
    """No quota counts them, because they have no user."""
    relay = drive(engine(TENTH), Ports(), Traffic(), login=STRICT)
    now = START
    for number in range(FREE_AT_MOST):
        now = max(now, relay.next_timer)
        relay.handle_timer(now)
        relay.receive_from_client(api_versions(number), now)
        assert relay.take_to_client()
    now = max(now, relay.next_timer)
    relay.handle_timer(now)
    with pytest.raises(RelayError, match="before the login") as caught:
        relay.receive_from_client(api_versions(FREE_AT_MOST), now)
    assert caught.value.reason == CLIENT_PROTOCOL_ERROR


@pytest.mark.parametrize("login", [None, STRICT])
def test_a_local_response_costs_nothing_before_the_login(login: Login | None) -> None:
    """As at a broker, which does not know the user yet."""
    relay = drive(engine({EVERYONE: LITTLE}), Ports(), Traffic(), login=login)
    told = Playbook(relay).client(api_versions(1)).to_client(unsupported_api_versions(1, 0, 4))
    if login is None:
        told.muted(1.0)
    else:
        told.unmuted()
