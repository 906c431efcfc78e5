"""The first request of a client on a connection waits until the request time that it owes is paid."""

from typing import Any

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.enforcement import OBSERVE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from proxy.wire.frames import CUT_THROUGH_BYTES
from tests.support.messages.exchanges import api_versions, fetch, opaque, produce, produced, responded
from tests.support.messages.kio_messages import Ports, framed
from tests.support.messages.logins import handshake
from tests.support.quotas.buckets import live_buckets
from tests.support.quotas.enforcement import enforcement
from tests.support.stories.logging_in import ALICE, STRICT, begin, step
from tests.support.stories.playbook import EACH_CLIENT, EVERYONE, START, Playbook, Quotas, drive, engine

TENTH: Quotas = {EVERYONE: {"request_percentage": 10.0}}
"""One tenth of a second at once, then a tenth of the time."""


def connection(limits: QuotaEngine, **settings: Any) -> Playbook:
    return Playbook(drive(limits, Ports(), Traffic(), **settings))


def owing(quotas: Quotas | None = None, seconds: float = 0.5, **settings: Any) -> QuotaEngine:
    """The quotas after a request of so many seconds. With TENTH, 0.5 s leave a debt of 4 s."""
    limits = engine(quotas or TENTH, **settings)
    connection(limits).client(opaque(1)).to_broker(opaque(1)).at(seconds).broker(responded(1))
    return limits


def test_the_first_request_of_a_new_connection_waits_until_the_debt_is_paid() -> None:
    told = connection(owing()).at(0.5).client(opaque(1)).to_broker().busy()
    told.at(4.49).to_broker().at(4.51).to_broker(opaque(1))
    told.broker(responded(1)).to_client(responded(1))


def test_a_connection_per_request_gets_no_more_than_the_quota() -> None:
    """Natively, each request is forwarded at once: twenty times the quota."""
    limits = engine(TENTH)
    now, used = 0.0, 0.0
    while now < 60.0:
        told = connection(limits).at(now).client(opaque(1))
        while not (sent := told.relay.take_to_broker()):
            now = told.relay.next_timer - START
            told.at(now)
        assert b"".join(sent) == opaque(1)
        now += 0.2
        used += 0.2
        told.at(now).broker(responded(1))
        told.relay.relay.end()
    assert 5.9 <= used <= 6.5


def test_requests_behind_it_wait_as_well() -> None:
    told = connection(owing()).at(0.5).client(opaque(1) + opaque(2)).client(opaque(3)).to_broker()
    told.at(4.51).to_broker(opaque(1), opaque(2), opaque(3))


def test_a_connection_that_has_sent_requests_is_only_muted_for_its_own() -> None:
    """As in Kafka: for a second at most, and not for the requests of others."""
    limits = engine(TENTH)
    told = (
        connection(limits).client(opaque(1)).to_broker(opaque(1)).broker(responded(1)).to_client(responded(1))
    )
    connection(limits).client(opaque(1)).at(0.5).broker(responded(1))
    told.at(0.5).client(opaque(2)).to_broker(opaque(2))


@pytest.mark.parametrize("algorithm", [WINDOW, "pace"])
def test_a_debt_delays_it_no_longer_than_kafkas_rate_remembers_it(algorithm: str) -> None:
    limits = owing(seconds=60.0, algorithm=algorithm)
    connection(limits).at(60).client(opaque(1)).to_broker().at(69).to_broker().at(71.1).to_broker(opaque(1))


def test_a_client_id_that_changes_counts_as_a_new_connection() -> None:
    limits = engine({EACH_CLIENT: {"request_percentage": 10.0}})
    connection(limits).client(opaque(1)).at(0.5).broker(responded(1))
    other = framed(b"\0\x2a\0\x63" + (1).to_bytes(4, "big") + b"\0\x05other")
    told = (
        connection(limits).at(0.5).client(other).to_broker(other).broker(responded(1)).to_client(responded(1))
    )
    told.client(opaque(2)).to_broker().at(4.51).to_broker(opaque(2))


def test_clients_of_other_quotas_do_not_wait() -> None:
    limits = owing({EACH_CLIENT: {"request_percentage": 10.0}})
    other = framed(b"\0\x2a\0\x63" + (1).to_bytes(4, "big") + b"\0\x05other")
    connection(limits).at(0.5).client(other).to_broker(other)


def test_api_versions_waits_for_a_second_at_most_and_the_next_request_for_the_rest() -> None:
    asked = opaque(1, 18, 3, b"\0\1\1\0")
    told = connection(owing()).at(0.5).client(asked + opaque(2)).to_broker().at(1.49).to_broker()
    told.at(1.51).to_broker(asked)
    told.at(4.49).to_broker().at(4.53).to_broker(opaque(2))


def test_a_version_that_the_proxy_answers_waits_as_well() -> None:
    told = connection(owing()).at(0.5).client(api_versions(1)).to_client().at(1.51)
    told.to_client(unsupported_api_versions(1, 0, 4))


LARGE = produce(1, size=2 * CUT_THROUGH_BYTES)


@pytest.mark.parametrize("asked", [LARGE, produce(1), fetch(1)], ids=["large", "produce", "fetch"])
def test_large_requests_and_those_that_the_proxy_reads_wait(asked: bytes) -> None:
    told = connection(owing()).at(0.5).client(asked[:CUT_THROUGH_BYTES]).to_broker()
    told.client(asked[CUT_THROUGH_BYTES:]).at(4.49).to_broker().at(4.51).to_broker(asked)


@pytest.mark.parametrize("version", [0, 7, 9])
def test_a_produce_request_without_a_response_uses_no_time_and_does_not_wait(version: int) -> None:
    asked = produce(1, version=version, acks=0)
    connection(owing()).at(0.5).client(asked).to_broker(asked)


def test_a_login_does_not_wait_and_the_first_request_after_it_does() -> None:
    limits = engine(TENTH)
    first = connection(limits, principal="alice")
    first.client(opaque(1)).at(0.5).broker(responded(1))
    told = connection(limits, login=STRICT).at(0.5)
    begin(told, "PLAIN")
    step(told, 2, ALICE, b"")
    told.client(opaque(3)).to_broker().at(4.51).to_broker(opaque(3))


def test_a_request_whose_client_hangs_up_is_dropped() -> None:
    told = connection(owing()).at(0.5).client(opaque(1)).to_broker()
    assert told.relay.relay.status.waits_for_debt
    told.relay.relay.end()
    told.to_broker()
    assert not told.relay.relay.awaits_late


def test_a_shutdown_does_not_forward_it() -> None:
    connection(owing()).at(0.5).client(opaque(1)).to_broker().drain().to_broker()


def test_a_limit_that_is_removed_frees_it() -> None:
    limits = owing()
    told = connection(limits).at(0.5).client(opaque(1)).to_broker()
    limits.configure(Limits({}, settings=enforcement()), START + 0.7)
    told.at(1.51).to_broker(opaque(1))


def test_observed_quotas_delay_nothing() -> None:
    connection(owing(mode=OBSERVE)).at(0.5).client(opaque(1)).to_broker(opaque(1))


def test_the_wait_is_counted() -> None:
    limits = owing()
    (bucket,) = live_buckets(limits)
    requests, seconds = bucket.throttled_requests, bucket.throttle_seconds
    connection(limits).at(0.5).client(opaque(1))
    assert bucket.throttled_requests == requests + 1
    assert bucket.throttle_seconds == pytest.approx(seconds + 4.0)


def test_a_produce_request_behind_it_is_charged_once() -> None:
    quotas = {EVERYONE: {"request_percentage": 10.0, "producer_byte_rate": 1000.0}}
    told = connection(owing(quotas)).at(0.5).client(produce(1, size=1500)).to_broker()
    told.at(4.51).to_broker(produce(1, size=1500)).broker(produced(1)).at(4.9).client(produce(2)).to_broker()
    told.at(5.1).to_broker(produce(2))


def test_messages_of_a_login_after_the_first_do_not_wait() -> None:
    limits = engine(TENTH)
    told = connection(limits, login=STRICT)
    begin(told, "PLAIN")
    step(told, 2, ALICE, b"")
    connection(limits, principal="alice").client(opaque(1)).at(0.5).broker(responded(1))
    told.at(0.5).client(handshake(3, "PLAIN", 1)).to_broker(handshake(3, "PLAIN", 1))
