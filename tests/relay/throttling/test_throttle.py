"""Respond, then mute: the wait is announced in the response, and reading from the client stops for it."""

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.enforcement import WINDOW
from proxy.quota.measure.fetch_tokens import queue_of
from proxy.quota.quota import Quota
from proxy.quota.verdict import Verdict
from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from proxy.wire.fetch.rewrite import fetch_response
from proxy.wire.views import RequestView, ResponseView
from tests.support.messages.exchanges import (
    api_versions,
    fetch,
    fetched,
    opaque,
    produce,
    produced,
    responded,
)
from tests.support.messages.kio_messages import Ports
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EACH_CLIENT, EVERYONE, START, Playbook, drive, engine, new_relay

KILOBYTE_IN = {EVERYONE: {"producer_byte_rate": 1000.0}}
KILOBYTE_OUT = {EVERYONE: {"consumer_byte_rate": 1000.0}}


EXPECTED_BYTES = 196.0
"""Of a response to a fetch whose last one has had 200 bytes with its length, as the quota counts it."""


def producing() -> Playbook:
    return Playbook(new_relay(KILOBYTE_IN))


def consuming() -> Playbook:
    return Playbook(new_relay(KILOBYTE_OUT))


def fetched_nothing(correlation_id: int, throttle_ms: int, version: int = 11, session_id: int = 0) -> bytes:
    """The empty response of a client over its quota."""
    return fetch_response(version, correlation_id, session_id=session_id, throttle_time_ms=throttle_ms)


def bounded_fetch(correlation_id: int, client_id: str = "client") -> bytes:
    """A fetch that asks for no more than a quota of 1000 B/s lets it: it passes as it is."""
    return fetch(correlation_id, max_bytes=100, client_id=client_id)


def test_a_request_over_the_quota_passes_and_its_client_is_muted() -> None:
    story = producing().client(produce(1, size=3500)).to_broker(produce(1, size=3500)).muted(2.5)
    story.broker(produced(1)).to_client(produced(1, throttle_ms=2500)).muted(2.5)
    story.at(2.499).muted(2.5).at(2.5).unmuted().timer(None).idle()


def test_the_response_announces_what_is_left_of_the_wait() -> None:
    story = producing().client(produce(1, size=3500)).to_broker(produce(1, size=3500))
    story.at(1.75).broker(produced(1)).to_client(produced(1, throttle_ms=750)).muted(2.5)


def test_what_is_left_is_rounded_up_to_whole_milliseconds() -> None:
    story = producing().client(produce(1, size=3500)).to_broker(produce(1, size=3500))
    story.at(1.7496).broker(produced(1)).to_client(produced(1, throttle_ms=751))


def test_a_response_after_the_wait_announces_none() -> None:
    story = producing().client(produce(1, size=3500)).to_broker(produce(1, size=3500))
    story.at(2.5).unmuted().at(4).broker(produced(1)).to_client(produced(1)).unmuted()


def test_within_the_quota_nothing_happens() -> None:
    story = producing()
    for second in range(5):
        story.at(second).client(produce(second, size=1000)).to_broker(produce(second, size=1000)).unmuted()
        story.broker(produced(second)).to_client(produced(second)).timer(None)


def test_a_wait_as_told_leaves_no_debt() -> None:
    story = producing().client(produce(1, size=3500)).to_broker(produce(1, size=3500)).muted(2.5)
    story.at(2.5).client(produce(2, size=500)).to_broker(produce(2, size=500)).muted(3.0)


def test_the_longer_of_the_brokers_wait_and_ours_is_announced() -> None:
    story = producing().client(produce(1, size=3500)).to_broker(produce(1, size=3500))
    story.broker(produced(1, throttle_ms=9000)).to_client(produced(1, throttle_ms=9000)).muted(2.5)
    story.at(2.5).client(produce(2, size=3500)).to_broker(produce(2, size=3500)).muted(6.0)
    story.broker(produced(2, throttle_ms=3499)).to_client(produced(2, throttle_ms=3500))


def test_the_brokers_own_wait_passes_without_a_quota() -> None:
    story = Playbook(new_relay()).client(produce(1)).to_broker(produce(1))
    story.broker(produced(1, throttle_ms=42)).to_client(produced(1, throttle_ms=42)).unmuted()


def test_requests_behind_a_muted_one_wait_for_the_end_of_the_wait() -> None:
    first, second, third = produce(1, size=3000), opaque(2), produce(3, size=1500)
    story = producing().client(first + second + third).to_broker(first).muted(2.0).busy()
    story.broker(produced(1)).to_client(produced(1, throttle_ms=2000)).busy()
    story.client(fetch(4)).to_broker().at(1.999).to_broker()
    story.at(2.0).to_broker(second, third).muted(3.5)
    story.at(3.5).to_broker(fetch(4)).unmuted()
    story.broker(responded(2) + produced(3) + fetched(4)).to_client(
        responded(2), produced(3), fetched(4)
    ).idle()


def test_half_a_request_behind_a_muted_one_is_read_after_the_wait() -> None:
    second = produce(2)
    story = (
        producing().client(produce(1, size=3000) + second[:20]).to_broker(produce(1, size=3000)).muted(2.0)
    )
    story.client(second[20:]).to_broker().at(2.0).to_broker(second)


def test_a_response_to_an_earlier_request_passes_while_the_client_is_muted() -> None:
    story = producing().client(fetch(1) + produce(2, size=3000)).to_broker(fetch(1), produce(2, size=3000))
    story.muted(2.0).broker(fetched(1)).to_client(fetched(1))
    story.at(0.5).broker(produced(2)).to_client(produced(2, throttle_ms=1500)).muted(2.0)


def test_acks_0_mutes_without_a_response() -> None:
    request = produce(1, size=3500, acks=0)
    story = producing().client(request + produce(2)).to_broker(request).to_client().muted(2.5)
    story.at(2.5).to_broker(produce(2))


def test_a_response_over_the_quota_announces_its_wait_and_mutes() -> None:
    story = consuming().client(bounded_fetch(1)).to_broker(bounded_fetch(1)).unmuted()
    story.at(1).broker(fetched(1, size=3500)).to_client(fetched(1, size=3500, throttle_ms=2500)).muted(3.5)
    story.client(bounded_fetch(2)).to_broker().at(3.5).to_broker(bounded_fetch(2)).unmuted()


def test_pipelined_fetches_wait_for_all_that_they_bring() -> None:
    story = consuming().client(bounded_fetch(1) + bounded_fetch(2))
    story.to_broker(bounded_fetch(1))
    story.broker(fetched(1, size=2000)).to_client(fetched(1, size=2000, throttle_ms=1000)).muted(0.5)
    # The second waits for as long as it lets a broker wait, and is sent again.
    story.at(0.5).to_client(fetched_nothing(2, 500)).muted(1.0).client(bounded_fetch(2))
    story.at(0.99).to_broker().at(1.0).to_broker(bounded_fetch(2))
    story.broker(fetched(2, size=2000)).to_client(fetched(2, size=2000, throttle_ms=2000)).muted(3.0)
    story.at(3.0).unmuted()


def test_pipelined_fetches_within_the_quota_go_one_by_one() -> None:
    """As at a broker, which works on one request of a connection at a time."""
    story = consuming().client(bounded_fetch(1) + bounded_fetch(2)).to_broker(bounded_fetch(1))
    story.broker(fetched(1)).to_client(fetched(1)).to_broker(bounded_fetch(2))
    story.broker(fetched(2)).to_client(fetched(2)).unmuted().idle()


def test_pipelined_fetches_are_in_flight_together_if_there_are_tokens_for_all() -> None:
    """Each may bring a batch of 1 MiB: the first two have tokens, and the third might have none."""
    made = engine({EVERYONE: {"consumer_byte_rate": 2.5e6}})
    relay = drive(made, Ports(), Traffic())
    story = Playbook(relay).client(bounded_fetch(1) + bounded_fetch(2)).to_broker(bounded_fetch(1))
    story.broker(fetched(1)).to_client(fetched(1)).to_broker(bounded_fetch(2))
    story.client(bounded_fetch(3)).to_broker(bounded_fetch(3)).client(bounded_fetch(4)).to_broker()
    story.broker(fetched(2)).to_client(fetched(2)).to_broker()
    story.broker(fetched(3)).to_client(fetched(3)).to_broker(bounded_fetch(4))
    story.client(bounded_fetch(5)).to_broker(bounded_fetch(5))
    (bucket,) = live_buckets(made)
    assert (bucket.used, queue_of(bucket).reserved(START)) == (600.0, 2 * EXPECTED_BYTES)
    relay.end()
    assert bucket.used == 600.0 + 2 * EXPECTED_BYTES, "a client gains nothing by disconnecting"


def test_eight_pipelined_fetches_are_in_flight_at_most() -> None:
    made = engine({EVERYONE: {"consumer_byte_rate": 1e9}})
    story = Playbook(drive(made, Ports(), Traffic()))
    story.client(bounded_fetch(0)).to_broker(bounded_fetch(0)).broker(fetched(0)).to_client(fetched(0))
    story.client(b"".join([bounded_fetch(at) for at in range(1, 25)]))
    (bucket,) = live_buckets(made)
    for begin in (1, 9, 17):
        story.to_broker(*[bounded_fetch(at) for at in range(begin, begin + 8)])
        for at in range(begin, begin + 8):
            assert queue_of(bucket).reserved(START) == EXPECTED_BYTES * (begin + 8 - at)
            story.broker(fetched(at)).to_client(fetched(at))
    story.idle()


def test_a_short_wait_does_not_cut_a_long_one() -> None:
    both = {EVERYONE: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0}}
    story = Playbook(new_relay(both)).client(bounded_fetch(1) + produce(2, size=9000))
    story.to_broker(bounded_fetch(1), produce(2, size=9000)).muted(8.0)
    story.broker(fetched(1, size=1500)).to_client(fetched(1, size=1500, throttle_ms=500)).muted(8.0)
    story.broker(produced(2)).to_client(produced(2, throttle_ms=8000)).muted(8.0)


def test_a_produce_is_not_charged_for_its_response_nor_a_fetch_for_its_request() -> None:
    tiny = {EVERYONE: {"producer_byte_rate": 1e9, "consumer_byte_rate": 1.0}}
    story = Playbook(new_relay(tiny)).client(produce(1, size=5000)).to_broker(produce(1, size=5000))
    story.broker(produced(1)).to_client(produced(1)).unmuted()
    tiny = {EVERYONE: {"producer_byte_rate": 1.0, "consumer_byte_rate": 1e9}}
    story = Playbook(new_relay(tiny)).client(fetch(1)).to_broker(fetch(1)).unmuted()
    story.broker(fetched(1, size=5000)).to_client(fetched(1, size=5000)).unmuted()


def test_opaque_requests_are_free() -> None:
    story = producing().client(opaque(1, body=bytes(9000))).to_broker(opaque(1, body=bytes(9000))).unmuted()
    story.broker(responded(1, bytes(9000))).to_client(responded(1, bytes(9000))).unmuted()


def test_a_local_response_passes_while_its_client_is_muted_by_what_is_before_it() -> None:
    story = producing().client(produce(1, size=3000)).to_broker(produce(1, size=3000)).muted(2.0)
    story.client(api_versions(2)).to_client()
    story.broker(produced(1)).to_client(produced(1, throttle_ms=2000))
    story.at(2.0).to_client(unsupported_api_versions(2, 0, 4)).idle()


def test_a_client_id_is_the_one_of_its_own_request() -> None:
    each = {
        EACH_CLIENT: {"producer_byte_rate": 1e9},
        QuotaEntity(None, "slow"): {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0},
    }
    fast = produce(1, size=9000, client_id="fast")
    slow_fetch = bounded_fetch(2, client_id="slow")
    slow = produce(4, size=3000, client_id="slow")
    story = (
        Playbook(new_relay(each)).client(fast + slow_fetch + opaque(3)).to_broker(fast, slow_fetch, opaque(3))
    )
    # The fetch of "slow" is charged to it, whoever has spoken since.
    story.broker(produced(1) + fetched(2, size=2000))
    story.to_client(produced(1), fetched(2, size=2000, throttle_ms=1000)).muted(1.0)
    story.broker(responded(3)).to_client(responded(3))
    story.at(1.0).client(slow).to_broker(slow).muted(3.0)
    story.broker(produced(4)).to_client(produced(4, throttle_ms=2000))


def test_kafkas_own_window_waits_as_kafka_does() -> None:
    """(rate - limit) / limit x window: 21,000 bytes in a window of 10 s at 1000 B/s make 11 s."""
    story = Playbook(new_relay(KILOBYTE_IN, algorithm=WINDOW))
    story.client(produce(1, size=10_000)).to_broker(produce(1, size=10_000)).unmuted()
    story.broker(produced(1)).to_client(produced(1))
    story.client(produce(2, size=11_000)).to_broker(produce(2, size=11_000)).muted(11.0)
    story.broker(produced(2)).to_client(produced(2, throttle_ms=11_000))


def test_a_wait_beyond_what_the_field_holds_is_announced_as_its_largest() -> None:
    slowest = {EVERYONE: {"producer_byte_rate": 0.0001}}
    story = Playbook(new_relay(slowest)).client(produce(1, size=1000)).to_broker(produce(1, size=1000))
    story.broker(produced(1)).to_client(produced(1, throttle_ms=2**31 - 1))


class Both(Quota):
    """Waits for the request, and for the response."""

    def __init__(self, admitted: float, charged: float) -> None:
        super().__init__((0,))
        self.admitted = admitted
        self.charged = charged

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        return Verdict(self.admitted)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        return Verdict(self.charged)


@pytest.mark.parametrize(
    ("admitted", "charged", "told", "until"), [(3, 1, 2500, 3.0), (3, 4, 4000, 4.5), (0, 1, 1000, 1.5)]
)
def test_the_longer_wait_of_request_and_response_holds(
    admitted: float, charged: float, told: int, until: float
) -> None:
    engine = QuotaEngine([Both(admitted, charged)])
    story = Playbook(drive(engine, Ports(), Traffic()))
    story.client(produce(1)).to_broker(produce(1)).at(0.5)
    story.broker(produced(1)).to_client(produced(1, throttle_ms=told)).muted(until)
