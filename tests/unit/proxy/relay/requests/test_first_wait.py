"""FirstWait: which requests wait, and for how long; relay/throttling/test_first_requests.py has more."""

from typing import Any

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import OBSERVE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import new_client
from proxy.relay.requests.first_wait import FirstWait
from proxy.wire.api_keys import API_VERSIONS, METADATA, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import ProtocolError
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView
from tests.support.messages.exchanges import opaque, produce
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, engine


class Side:
    """A client that owes `debt` seconds of a limit of 10 %."""

    def __init__(self, debt: float = 4.0, **settings: Any) -> None:
        self.engine = engine({EVERYONE: {"request_percentage": 10.0}}, **settings)
        traffic = Traffic(usage=UsageLedger())
        self.client = new_client(Identity("u", "", "127.0.0.1"), b"client", traffic, 1)
        self.wait = FirstWait(self.engine)
        response = ResponseView(0, False, 0)
        response.service_seconds = 0.1 + debt / 10.0
        self.engine.charge(RequestView(METADATA, 0, 1, "c", 0), response, self.client, START)

    def begins(self, request: bytes) -> bool:
        """Whether a request waits, of which these bytes have arrived."""
        size = LENGTH_SIZE + int.from_bytes(request[:LENGTH_SIZE], "big")
        frame = Frame([request], size, size == len(request))
        reader = Reader(frame.pieces, LENGTH_SIZE)
        header = read_request_header(reader)
        return self.wait.begins(frame, header, reader.offset, self.client, START)


@pytest.mark.parametrize(("debt", "waits"), [(0.0, False), (0.01, True), (4.0, True)])
def test_a_request_waits_if_there_is_a_debt(debt: float, waits: bool) -> None:
    side = Side(debt)
    assert side.begins(opaque(1, METADATA, 0)) == waits
    assert side.wait.last


# API, whether it waits, and whether it is the last that may wait
APIS = [(METADATA, True, True), (API_VERSIONS, True, False)]
APIS += [(SASL_HANDSHAKE, False, False), (SASL_AUTHENTICATE, False, False), (PRODUCE, True, True)]


@pytest.mark.parametrize(("api_key", "waits", "last"), APIS)
def test_some_requests_do_not_wait_for_the_debt_and_the_next_one_counts_as_the_first(
    api_key: int, waits: bool, last: bool
) -> None:
    side = Side()
    assert side.begins(produce(1) if api_key == PRODUCE else opaque(1, api_key, 0)) == waits
    assert side.wait.last == last


@pytest.mark.parametrize("version", [0, 3, 9, 12])
def test_a_produce_request_with_acks_0_does_not_wait(version: int) -> None:
    side = Side()
    assert not side.begins(produce(1, version=version, acks=0))
    assert not side.wait.last
    assert side.begins(produce(1, version=version, acks=1))


def test_a_produce_request_of_an_unknown_version_is_not_read() -> None:
    assert Side().begins(opaque(1, PRODUCE, 99, b""))


def test_the_head_of_a_produce_request_must_have_arrived() -> None:
    with pytest.raises(ProtocolError):
        Side().begins(produce(1)[:22])


def test_a_wait_is_reviewed_every_second_and_ends_when_the_debt_is_paid() -> None:
    side = Side(2.5)
    request = opaque(1, METADATA, 0)
    assert side.begins(request)
    ends = []
    while True:
        ends.append(round(side.wait.wake_at - START, 6))
        if side.wait.over(side.wait.wake_at):
            break
    assert ends == [1.0, 2.0, 2.5]
    assert b"".join(side.wait.take().pieces) == request


def test_api_versions_waits_for_a_window_at_most() -> None:
    side = Side()
    side.begins(opaque(1, API_VERSIONS, 3))
    assert not side.wait.over(START + 0.9)
    assert side.wait.over(START + 1.0)


def test_kafkas_rate_has_forgotten_a_use_after_all_its_windows() -> None:
    side = Side(6000.0, algorithm=WINDOW)
    assert side.begins(opaque(1, METADATA, 0))
    (bucket,) = live_buckets(side.engine)
    assert bucket.throttle_seconds <= 1.0 + 11.0


def test_nobody_waits_for_an_observed_quota_or_for_one_that_is_removed() -> None:
    assert not Side(mode=OBSERVE).begins(opaque(1, METADATA, 0))
    side = Side()
    assert side.begins(opaque(1, METADATA, 0))
    side.engine.configure(Limits({}), START)
    assert side.wait.over(START)


def test_the_wait_is_counted_as_that_of_one_request_of_its_client() -> None:
    side = Side()
    (bucket,) = live_buckets(side.engine)
    requests, seconds = bucket.throttled_requests, bucket.throttle_seconds
    side.begins(opaque(1, METADATA, 0))
    assert bucket.throttled_requests == requests + 1
    assert bucket.throttle_seconds == pytest.approx(seconds + 4.0)
