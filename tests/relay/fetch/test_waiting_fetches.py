"""Fetches of consumers over their quota: how long they wait, and which responses are withheld."""

from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.enforcement import OBSERVE
from proxy.quota.limits.limits import Limits
from proxy.relay.counters.traffic import Traffic
from proxy.wire.fetch.rewrite import fetch_response
from tests.support.messages.exchanges import (
    chunks,
    fetch,
    fetched,
    milliseconds,
    opaque,
    record_batch,
)
from tests.support.messages.exchanges import fetch_response as fetch_message
from tests.support.messages.kio_messages import (
    Ports,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.quotas.enforcement import enforcement
from tests.support.simulations.share_consumers import share_fetch
from tests.support.stories.playbook import EVERYONE, START, Playbook, drive, engine

SLOW = {EVERYONE: {"consumer_byte_rate": 1000.0}}


def connected(quotas: QuotaEngine) -> Playbook:
    return Playbook(drive(quotas, Ports(), Traffic()))


def in_debt(size: int = 5000) -> QuotaEngine:
    """An engine whose bucket of 1000 B/s owes what is beyond 1000 bytes."""
    made = engine(SLOW)
    other = connected(made).client(fetch(1)).to_broker(fetch(1, max_bytes=1000))
    other.broker(fetched(1, size=size)).relay.end()
    return made


def nothing(correlation_id: int, throttle_ms: int, version: int = 11, session_id: int = 0) -> bytes:
    return fetch_response(version, correlation_id, session_id=session_id, throttle_time_ms=throttle_ms)


def session(
    correlation_id: int,
    session_id: int,
    epoch: int,
    max_bytes: int = 50 << 20,
    max_wait_ms: int = 500,
    version: int = 12,
) -> bytes:
    """A fetch of a session."""
    request = read_frame(request_type(1, version), fetch(correlation_id, max_bytes, version=version))
    changed = replace(request, session_id=session_id, session_epoch=epoch, max_wait=milliseconds(max_wait_ms))
    return request_frame(changed, correlation_id, "client")


@pytest.mark.parametrize("version", [version for version in versions(1) if version <= 18])
def test_who_is_over_gets_an_empty_response_after_its_max_wait(version: int) -> None:
    story = connected(in_debt()).client(fetch(7, version=version)).at(0.49).to_client().to_broker()
    story.at(0.5).to_client(nothing(7, 3500, version)).to_broker()
    # It comes again when it has been told to, and later requests are read.
    story.client(fetch(8, version=version)).at(3.9).to_client().to_broker()


def test_the_wait_that_is_announced_is_that_of_the_debt() -> None:
    story = connected(in_debt(3000)).client(fetch(7)).at(0.5).to_client(nothing(7, 1500)).muted(2.0)
    story.client(fetch(8)).at(1.99).to_broker().at(2.0).to_broker(fetch(8, max_bytes=250)).unmuted()


def test_a_debt_that_is_soon_paid_is_waited_for() -> None:
    story = connected(in_debt(1400)).client(fetch(7)).to_broker().muted(0.4)
    story.at(0.4).to_broker(fetch(7, max_bytes=250)).to_client().unmuted()


def test_the_fetch_of_a_session_waits_for_longer_and_goes_on_with_its_epoch() -> None:
    """The broker counts the session's fetches, so this one has to reach it."""
    story = connected(in_debt(9000)).client(session(7, 99, 3)).at(4.99).to_broker().to_client()
    story.at(5.0).to_broker(session(7, 99, 3, max_bytes=1, max_wait_ms=0))
    brought = session_response(7, 99)
    story.broker(brought).to_client(nothing(7, 3000, 12, 99)).muted(8.0)
    story.client(session(8, 99, 4)).at(8.0).to_broker(session(8, 99, 4, max_bytes=250)).unmuted()


def session_response(
    correlation_id: int, session_id: int, size: int = 700, error_code: int = 0, version: int = 12
) -> bytes:
    response = fetch_message(
        version, record_batch(size), session_id=session_id, error_code=ErrorCode(error_code)
    )
    return response_frame(response, correlation_id)


def test_an_error_is_not_withheld() -> None:
    story = connected(in_debt(9000)).client(session(7, 99, 3)).at(5.0)
    story.to_broker(session(7, 99, 3, max_bytes=1, max_wait_ms=0))
    error = session_response(7, 99, error_code=71)
    story.broker(error)
    response = b"".join(story.relay.take_to_client())
    assert read_frame(response_type(1, 12), response).error_code == 71


def test_a_response_that_comes_when_others_have_spent_all_is_withheld() -> None:
    quotas = engine(SLOW)
    story = connected(quotas).client(session(7, 0, 0)).to_broker(session(7, 0, 0, max_bytes=1000))
    other = connected(quotas).client(fetch(1))
    other.broker(fetched(1, size=4000)).relay.end()
    story.broker(session_response(7, 99)).to_client(nothing(7, 3000, 12)).muted(3.0)


def test_a_large_response_is_withheld_as_it_arrives() -> None:
    quotas = engine(SLOW)
    story = connected(quotas).client(session(7, 99, 5)).to_broker(session(7, 99, 5, max_bytes=1000))
    other = connected(quotas).client(fetch(1))
    other.broker(fetched(1, size=4000)).relay.end()
    large = chunks(session_response(7, 99, size=3 << 20))
    story.broker(*large[:5]).to_client(nothing(7, 3000, 12, 99)).broker(*large[5:]).to_client().muted(3.0)
    story.at(3.0).client(session(8, 99, 6)).to_broker(session(8, 99, 6, max_bytes=250)).busy()


@pytest.mark.parametrize("how", ["raised", "removed"])
def test_a_changed_limit_frees_who_waits(how: str) -> None:
    quotas = in_debt(90_000)
    story = connected(quotas).client(session(7, 99, 3)).at(0.5).to_broker()
    limits = {EVERYONE: {"consumer_byte_rate": 1e9}} if how == "raised" else {}
    quotas.configure(Limits(limits), START + 0.5)
    story.at(1.6)
    assert len(story.relay.take_to_broker()) > 0
    story.unmuted()


def test_observed_nobody_waits_and_nothing_is_withheld() -> None:
    quotas = engine(SLOW)
    settings = enforcement(modes={"consumer_byte_rate": OBSERVE})
    quotas.configure(Limits(SLOW, settings=settings), START)
    for at in range(3):
        story = connected(quotas).client(fetch(at)).to_broker(fetch(at))
        story.broker(fetched(at, size=9000)).to_client(fetched(at, size=9000)).unmuted()


def test_the_drain_of_a_proxy_answers_who_waits() -> None:
    story = connected(in_debt()).client(fetch(7)).to_broker().drain().to_broker()
    assert len(story.relay.take_to_client()) == 1
    session_story = connected(in_debt(9000)).client(session(7, 99, 3)).to_broker().drain()
    session_story.to_broker(session(7, 99, 3, max_bytes=1, max_wait_ms=0))


@pytest.mark.parametrize("earlier", [False, True])
def test_a_drain_forwards_no_fetch_that_may_bring_records_over_the_quota(earlier: bool) -> None:
    """Neither one over its quota nor one that waits for earlier responses has a grant."""
    whole, in_session, share = fetch(8), session(8, 99, 3), share_fetch(2)
    nothing = share_fetch(2, max_records=0, max_wait_seconds=0.0)
    empty_session = session(8, 99, 3, max_bytes=1, max_wait_ms=0)
    for request, forwarded in ((whole, b""), (in_session, empty_session), (share, nothing)):
        story = connected(engine(SLOW) if earlier else in_debt(9000))
        if earlier:
            story.client(fetch(7))
            story.relay.take_to_broker()
        story.client(request).to_broker().drain().to_broker(forwarded)


def test_requests_behind_a_fetch_that_waits_are_read_after_it() -> None:
    story = connected(in_debt(1400)).client(fetch(7) + opaque(8)).to_broker().at(0.4)
    story.to_broker(fetch(7, max_bytes=250), opaque(8))


def test_who_waits_and_goes_leaves_no_place_in_the_line() -> None:
    quotas = in_debt(1400)
    gone = connected(quotas).client(fetch(7)).to_broker()
    gone.relay.end()
    connected(quotas).client(fetch(8)).at(0.4).to_broker(fetch(8, max_bytes=250))


def test_a_share_fetch_waits_until_the_debt_is_paid() -> None:
    """Its records would be locked for a consumer that does not get them. It also waits for the tokens of a
    second, because its batch may cost as much.
    """
    story = connected(in_debt(9000)).at(4.1).client(share_fetch(1)).at(8.9).to_broker().to_client()
    story.at(9.01).to_broker(share_fetch(1, max_bytes=1000))


def test_a_share_fetch_asks_for_no_records_while_there_is_a_debt() -> None:
    """It does not wait for longer than clients wait for a response."""
    story = connected(in_debt(9000)).client(share_fetch(1)).at(4.9).to_broker().to_client()
    story.at(8.9).to_broker(share_fetch(1, max_records=0, max_wait_seconds=0.0))
