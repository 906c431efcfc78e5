"""When the wait for a debt is reviewed, and whether its request is dropped; tests/relay has its stories."""

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.verdict import Verdict
from proxy.relay.counters.traffic import Bytes
from proxy.relay.exchange import Client, Exchange
from proxy.relay.requests.debt_wait import REVIEW_SECONDS, UNACKNOWLEDGED_SECONDS, DebtWait
from proxy.relay.requests.waiting_produce import WaitingProduce
from proxy.wire.api_keys import PRODUCE
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView

NOW = 1000.0


def wait(seconds: float, acks: int = -1) -> DebtWait:
    """The wait of a request for so long for what others owe."""
    bucket = Bucket(quota="producer_byte_rate", limit=1000.0, rule=RateRule(burst_seconds=1.0), now=NOW)
    bucket.record(1000.0 * (1.0 + seconds), NOW)
    verdict = Verdict(seconds + 1.0, bucket=bucket, ahead_seconds=seconds)
    view = RequestView(PRODUCE, 9, 1, "c", 100)
    view.acks = acks
    exchange = Exchange(1, Client("u", "c", "a", Bytes(), b"c"))
    return DebtWait(WaitingProduce(Frame([b"abcd"], 4, True), exchange, Reader([]), view), verdict, NOW)


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
