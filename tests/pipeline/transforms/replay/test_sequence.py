"""Sequence: where in its interval a connection begins to send."""

from dataclasses import replace

import pytest

from pipeline.transforms.replay.layout import Interval
from pipeline.transforms.replay.sequence import in_sequence

LIMIT = 100.0
BURST = 1.0


def interval(
    start: float, size: float, waited: float, *, requests: int = 2, throttled: int | None = None
) -> Interval:
    """One second; every request waits, or none, unless `throttled` says how many."""
    waiting = requests if throttled is None and waited else throttled or 0
    return Interval(start, 1.0, size, requests, waiting, waited)


def placed(*intervals: Interval, limit: float = LIMIT, connections: int = 1) -> list[Interval]:
    return in_sequence([replace(each, connections=connections) for each in intervals], limit, BURST)


def idle(*intervals: Interval) -> list[float]:
    return [round(each.idle, 6) for each in placed(*intervals)]


def test_the_first_waits_end_where_the_next_interval_begins() -> None:
    first = interval(5.0, 140.0, 0.4, requests=3, throttled=1)
    assert idle(first, interval(6.0, 100.0, 1.0)) == [0.6, 0.0]


def test_a_wait_goes_on_as_long_as_the_later_intervals_have_no_requests_of_their_own() -> None:
    """The first wait ends 0.25 s after the first interval, so that the others leave no time between waits."""
    first = interval(0.0, 150.0, 0.5, requests=3, throttled=1)
    later = [interval(1.0, 75.0, 0.75), interval(2.0, 100.0, 1.0), interval(3.0, 60.0, 0.6)]
    assert idle(first, *later) == [0.75, 0.25, 0.0, 0.0]


def test_a_wait_may_be_longer_than_intervals() -> None:
    """A request each 2.5 seconds: some intervals have none, and therefore no event."""
    waits = [interval(start, 250.0, 2.5, requests=1) for start in (0.0, 2.0, 5.0, 7.0)]
    assert idle(*waits) == [0.0, 0.5, 0.0, 0.0]


def test_a_late_client_does_not_make_the_first_wait_later() -> None:
    """It waits for 0.9 s of each second, and 10 bytes are refilled before its requests."""
    first = interval(0.0, 150.0, 0.5, requests=3, throttled=1)
    later = [interval(start, 100.0, 0.9) for start in (1.0, 2.0, 3.0)]
    assert idle(first, *later) == [0.5, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "following",
    [
        pytest.param(interval(4.0, 100.0, 0.9), id="after a pause"),
        pytest.param(interval(1.0, 10.0, 0.0), id="without waits"),
    ],
)
def test_throttling_that_ends_needs_no_place(following: Interval) -> None:
    first = interval(0.0, 150.0, 0.5, requests=3, throttled=1)
    assert placed(first, following) == [first, following]


def test_a_burst_within_throttling_begins_its_interval() -> None:
    """Some of its requests pass: it had a pause, in which the bucket was filled."""
    burst = interval(1.0, 150.0, 0.5, requests=10, throttled=5)
    assert idle(interval(0.0, 150.0, 0.5), burst, interval(2.0, 100.0, 1.0)) == [0.5, 0.0, 0.0]


def test_a_burst_that_the_end_of_an_interval_splits() -> None:
    """60 bytes in the first interval, of which the bucket lacks 50 when it ends; 50 pass in the second."""
    first, second = placed(interval(0.0, 60.0, 0.0), interval(1.0, 150.0, 1.0, requests=20, throttled=15))
    assert first.sending == pytest.approx(0.1)
    assert second.continues_burst


@pytest.mark.parametrize(
    ("size", "sending"),
    [
        pytest.param(200.0, None, id="a full bucket passes in the second interval"),
        pytest.param(150.0, 1.0, id="others used the bucket"),
    ],
)
def test_an_unthrottled_interval_with_a_burst_of_its_own(size: float, sending: float | None) -> None:
    first, second = placed(interval(0.0, 40.0, 0.0), interval(1.0, size, 1.0, requests=20, throttled=15))
    assert first.sending == sending
    assert second.continues_burst == (sending is not None)


def test_connections_share_the_limit() -> None:
    """Each of two sends at half the limit, and waits for all of the time."""
    first = interval(0.0, 70.0, 0.4, requests=3, throttled=1)
    found = placed(first, interval(1.0, 50.0, 1.0), connections=2)
    assert [round(each.idle, 6) for each in found] == [0.6, 0.0]


def test_without_a_limit_nothing_is_placed() -> None:
    first = interval(0.0, 150.0, 0.5, requests=3, throttled=1)
    second = interval(1.0, 100.0, 1.0)
    assert placed(first, second, limit=0.0) == [first, second]
    assert placed(first, second) == [replace(first, idle=0.5), second]
