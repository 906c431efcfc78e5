"""The request quota: a fetch of a session costs as many partitions as the session has."""

from typing import Final

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.kinds import request_percentage
from proxy.quota.limits.limits import Limits
from proxy.relay.counters.traffic import Traffic
from proxy.relay.inflight import LOCAL_PARTITION_SECONDS, LOCAL_SECONDS
from proxy.wire.error_codes import INVALID_FETCH_SESSION_EPOCH
from proxy.wire.fetch.rewrite import fetch_response
from tests.support.messages.kio_messages import Ports
from tests.support.quotas.buckets import live_buckets
from tests.support.quotas.enforcement import enforcement
from tests.support.stories.fetching import HOT, OURS, THEIRS, Omitting, fetch, fetched
from tests.support.stories.playbook import EVERYONE, START, Playbook, Quotas, drive

PLENTY = {EVERYONE: {"request_percentage": 1e9}}
ONE = {("orders", 0): 1}
MANY = {("orders", number): 0 for number in range(300)}
MORE = {("orders", number): 0 for number in range(300, 400)}
VERSION = 12

Partitions = dict[tuple[str, int], int]


class Told:
    """A story of one connection, and what its fetches have cost."""

    def __init__(self, quotas: Quotas = PLENTY, *, omits: bool = False) -> None:
        kinds = [request_percentage.KIND.build()]
        self.limits: Final = QuotaEngine([*kinds, Omitting()] if omits else kinds)
        self.limits.configure(Limits(quotas, settings=enforcement()), START)
        self.told: Final = Playbook(drive(self.limits, Ports(), Traffic()))
        self.now = 0.0
        self.seen = 0.0

    def cost(self) -> float:
        """Seconds that have been charged since the last call."""
        used = sum(each.used for each in live_buckets(self.limits) if each.quota == "request_percentage")
        cost, self.seen = (used - self.seen) / 100, used
        return cost

    def open(self, named: Partitions, session_id: int = OURS) -> None:
        """Open the session OURS, for the client `session_id`."""
        whole = fetch(1, named, VERSION, session=(0, 0))
        response = dict.fromkeys(named, (70, b""))
        self.told.client(whole).to_broker(whole).broker(fetched(1, response, VERSION, session_id=OURS))
        self.told.to_client(fetched(1, response, VERSION, session_id=session_id))
        self.cost()

    def fetch(self, named: Partitions, epoch: int, session_id: int = OURS) -> float:
        """Return the cost of a fetch of the session whose response takes 9 of 10 seconds of its wait."""
        self.told.at(self.now)
        self.told.client(fetch(1, named, VERSION, session=(session_id, epoch), max_wait_ms=10_000))
        self.now += 9
        self.told.relay.take_to_broker()
        self.told.at(self.now).broker(fetched(1, {("orders", 0): (70, b"")}, VERSION, session_id=OURS))
        self.told.relay.take_to_client()
        return self.cost()

    def rejected(self, session_id: int, epoch: int, named: Partitions) -> None:
        asked = fetch(1, named, VERSION, session=(session_id, epoch))
        self.told.client(asked).to_broker()
        self.told.to_client(fetch_response(VERSION, 1, error_code=INVALID_FETCH_SESSION_EPOCH))


def close_to(seconds: float) -> object:
    """10 ms and 30 us for each partition, and a little for the bytes."""
    return pytest.approx(seconds, abs=0.001)


def test_a_fetch_of_a_session_costs_the_time_of_all_its_partitions() -> None:
    told = Told()
    told.open(MANY)
    assert told.fetch(ONE, 1) == close_to(0.01 + 300 * 30e-6)
    assert told.fetch(MORE, 2) == close_to(0.01 + 400 * 30e-6)
    assert told.fetch({}, 3) == close_to(0.01 + 400 * 30e-6)


def test_a_fetch_of_one_partition_costs_little() -> None:
    told = Told()
    told.open(ONE)
    assert told.fetch(ONE, 1) == close_to(0.01)


def test_a_session_that_was_opened_elsewhere_must_be_opened_again() -> None:
    """Its size is not known, so it could have any number of partitions."""
    told = Told()
    told.rejected(OURS, 1, {})
    assert told.cost() == pytest.approx(LOCAL_SECONDS + LOCAL_PARTITION_SECONDS, rel=0.05)
    told.open(ONE)
    assert told.fetch({}, 1) == close_to(0.01)


def test_a_session_that_a_broker_rejects_to_open_is_not_known() -> None:
    told = Told()
    asked = fetch(1, MANY, VERSION, session=(0, 0))
    told.told.client(asked).to_broker(asked)
    response = fetched(1, {}, VERSION, session_id=OURS, error_code=INVALID_FETCH_SESSION_EPOCH)
    told.told.broker(response).to_client(response)
    told.rejected(OURS, 1, {})


def test_a_session_from_before_the_quota_is_opened_again_once() -> None:
    told = Told({})
    told.open(MANY)
    told.limits.configure(Limits(PLENTY, settings=enforcement()), START)
    told.rejected(OURS, 1, {})
    told.open(MANY)
    assert told.fetch({}, 1) == close_to(0.01 + 300 * 30e-6)


def test_what_a_session_gets_while_no_quota_counts_is_not_forgotten() -> None:
    told = Told()
    told.open(ONE)
    told.limits.configure(Limits({}, settings=enforcement()), START)
    told.fetch(MANY, 1)
    told.limits.configure(Limits(PLENTY, settings=enforcement()), START)
    told.rejected(OURS, 2, {})


def test_no_session_of_an_exempt_client_is_rejected() -> None:
    told = Told()
    told.limits.configure(Limits(PLENTY, settings=enforcement(exempt_users=["ANONYMOUS"])), START)
    asked = fetch(1, {}, VERSION, session=(OURS, 1))
    told.told.client(asked).to_broker(asked)


def test_a_session_that_the_proxy_manages_has_the_id_of_the_client() -> None:
    told = Told(omits=True)
    both = {(HOT, number): 0 for number in range(300)}
    told.open(both, THEIRS)
    assert told.fetch({}, 1, THEIRS) == close_to(0.01 + 300 * 30e-6)
    told.rejected(OURS, 2, {})
