"""When the wait for a debt is reviewed, and whether its request is dropped; tests/relay has its stories."""

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.verdict import ALLOW, Verdict
from proxy.relay.counters.traffic import Bytes, Traffic
from proxy.relay.exchange import Client, Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.requests.debt_wait import REVIEW_SECONDS, UNACKNOWLEDGED_SECONDS, DebtWait
from proxy.relay.requests.waiting_produce import WaitingProduce
from proxy.wire.api_keys import FETCH, JOIN_GROUP, METADATA, PRODUCE
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView

NOW = 1000.0
CLIENT = Client("u", "c", "a", Bytes(), b"c")


def in_flight(*api_keys: int) -> InFlight:
    """Requests of these APIs."""
    made = InFlight(QuotaEngine([]), Traffic(), RelayOutput())
    for number, api_key in enumerate(api_keys):
        made.add(Exchange(number, CLIENT, api_key=api_key))
    return made


def wait(
    seconds: float, acks: int = -1, *, uncharged: bool = False, behind: InFlight | None = None
) -> DebtWait:
    """The wait of a request for so long for what others owe; `behind`: the requests before it."""
    bucket = Bucket(quota="producer_byte_rate", limit=1000.0, rule=RateRule(burst_seconds=1.0), now=NOW)
    bucket.record(1000.0 * (1.0 + seconds), NOW)
    verdict = Verdict(seconds + 1.0, bucket=bucket, ahead_seconds=seconds) if seconds > 0.0 else ALLOW
    view = RequestView(PRODUCE, 9, 1, "c", 100)
    view.acks = acks
    view.uncharged = uncharged
    produce = WaitingProduce(Frame([b"abcd"], 4, True), Exchange(1, CLIENT), Reader([]), view)
    return DebtWait(produce, verdict, behind or in_flight(), NOW)


@pytest.mark.parametrize(("seconds", "wakes_in"), [(0.25, 0.25), (5.0, REVIEW_SECONDS)])
def test_it_is_reviewed_when_the_debt_is_paid_or_may_have_changed(seconds: float, wakes_in: float) -> None:
    assert wait(seconds).wake_at == pytest.approx(NOW + wakes_in)


def test_a_review_finds_the_debt_paid_or_sets_the_next_one() -> None:
    made = wait(1.5)
    assert not made.review(QuotaEngine([]), NOW + 1.0)
    assert made.wake_at == pytest.approx(NOW + 1.5)
    assert made.review(QuotaEngine([]), made.wake_at)


@pytest.mark.parametrize(
    ("seconds", "acks", "droppable"),
    [
        (1.0, -1, True),
        (1.0, 1, True),
        (1.0, 0, False),
        (UNACKNOWLEDGED_SECONDS, 0, False),
        (UNACKNOWLEDGED_SECONDS + 0.1, 0, True),
    ],
)
def test_a_short_wait_without_acknowledgement_outlasts_the_client(
    seconds: float, acks: int, droppable: bool
) -> None:
    assert wait(seconds, acks).droppable == droppable


@pytest.mark.parametrize("seconds", [0.0, 0.5])
@pytest.mark.parametrize("acks", [0, 1])
@pytest.mark.parametrize("api_key", [FETCH, JOIN_GROUP])
def test_a_request_whose_records_are_not_charged_waits_for_what_the_broker_waits_for(
    seconds: float, acks: int, api_key: int
) -> None:
    order = in_flight(METADATA, api_key)
    made = wait(seconds, acks, uncharged=True, behind=order)
    assert made.awaits_response
    assert made.droppable
    assert NOW < made.wake_at <= NOW + REVIEW_SECONDS
    assert not made.review(QuotaEngine([]), NOW + 1.0)
    assert made.wake_at == NOW + 1.0 + REVIEW_SECONDS
    order.take_response(0)
    assert not made.review(QuotaEngine([]), NOW + 100.0)
    order.take_response(1)
    assert made.review(QuotaEngine([]), NOW + 100.0)


def test_other_requests_do_not_wait_for_it() -> None:
    assert wait(0.0, behind=in_flight(FETCH)).review(QuotaEngine([]), NOW)
    assert wait(0.0, uncharged=True, behind=in_flight(METADATA, PRODUCE)).review(QuotaEngine([]), NOW)
