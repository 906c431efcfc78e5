"""When a waiting Produce request is looked at, and whether it is dropped; tests/relay has its stories."""

import pytest

from proxy.quota.measure.bucket import Bucket, RateRule
from proxy.quota.verdict import Verdict
from proxy.relay.exchange import Client, Exchange
from proxy.relay.traffic import Bytes
from proxy.relay.waiting_produce import REVIEW_SECONDS, UNACKNOWLEDGED_SECONDS, WaitingProduce
from proxy.wire.api_keys import PRODUCE
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView

NOW = 1000.0


def waiting(seconds, acks=-1):
    """A request that waits so long for what others owe."""
    bucket = Bucket(quota="producer_byte_rate", limit=1000.0, rule=RateRule(burst_seconds=1.0), now=NOW)
    verdict = Verdict(seconds + 1.0, bucket=bucket, ahead_seconds=seconds)
    view = RequestView(PRODUCE, 9, 1, "c", 100)
    view.acks = acks
    frame = Frame([b"abcd"], 4, True)
    made = WaitingProduce(
        frame, Exchange(1, Client("u", "c", "a", Bytes(), b"c")), Reader([]), view, verdict, NOW
    )
    return made, frame


def test_it_keeps_the_frame_though_the_splitter_uses_its_own_again():
    made, frame = waiting(5.0)
    assert made.frame is not frame
    assert (made.frame.pieces, made.frame.size, made.frame.complete) == ([b"abcd"], 4, True)


@pytest.mark.parametrize(("seconds", "wakes_in"), [(0.25, 0.25), (5.0, REVIEW_SECONDS)])
def test_it_is_looked_at_when_the_debt_is_paid_or_may_have_changed(seconds, wakes_in):
    made, _ = waiting(seconds)
    assert (made.looked_at, made.wake_at) == (NOW, pytest.approx(NOW + wakes_in))
    made.look(NOW + 1.5, NOW + 1.0)
    assert (made.looked_at, made.wake_at) == (NOW + 1.0, pytest.approx(NOW + 1.5))


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
def test_a_short_wait_without_acknowledgement_outlasts_the_client(seconds, acks, droppable):
    made, _ = waiting(seconds, acks)
    assert made.droppable == droppable
