"""Which grant a fetch gets; tests/relay/throttling has the stories of several fetches in flight."""

import pytest

from proxy.quota.fetch.grant import BESIDE_BYTES, FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_tokens import queue_of, tokens_left
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import new_client
from proxy.relay.fetch.grants import BESIDE_AT_MOST, FetchGrants
from proxy.wire.api_keys import FETCH
from proxy.wire.views import RequestView
from tests.support.present import present
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, engine

LIMIT = 1e9
SIZE = 300


class Side:
    """A connection whose fetches have a max_bytes of 100."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.engine = engine({EVERYONE: {"consumer_byte_rate": limit}})
        self.client = new_client(Identity("u", "c", "127.0.0.1"), b"c", Traffic(), 0)
        self.grants = FetchGrants(self.engine)

    @property
    def bucket(self) -> Bucket:
        return live_buckets(self.engine)[0]

    @property
    def reserved(self) -> float:
        return queue_of(self.bucket).reserved(START)

    def view(self, replica_id: int = -1) -> RequestView:
        view = RequestView(FETCH, 12, 1, "c", 100)
        view.max_bytes = 100
        view.replica_id = replica_id
        return view

    def begin(self, replica_id: int = -1) -> FetchGrant | None:
        return self.grants.begin(self.view(replica_id), self.client, START)

    def beside(self) -> FetchGrant | None:
        return self.grants.beside(self.view(), self.client, START)

    def first(self, size: int = SIZE) -> FetchGrant:
        """The grant of a fetch in flight, after one that brought as many bytes."""
        grant = present(self.begin())
        grant.ask(START)
        grant.settle(size, size, START, START)
        assert self.begin() is grant, "it serves the next fetch"
        assert grant.ask(START) == 0.0
        return grant


def test_a_follower_has_no_grant() -> None:
    side = Side()
    assert side.begin(replica_id=2) is None
    assert not side.grants.in_flight


def test_a_fetch_is_in_flight_until_its_response_has_been_charged() -> None:
    side = Side()
    grant = present(side.begin())
    assert not side.grants.in_flight
    grant.ask(START)
    assert side.grants.in_flight
    grant.settle(SIZE, SIZE, START, START)
    assert not side.grants.in_flight


def test_each_fetch_in_flight_has_a_grant_of_its_own() -> None:
    side = Side()
    grants = [side.first(), *[side.beside() for _ in range(BESIDE_AT_MOST)]]
    assert side.reserved == SIZE * len(grants)
    assert side.beside() is None, "as many are in flight as may be"
    present(grants[0]).settle(SIZE, SIZE, START, START)
    assert side.beside() is grants[0]
    assert side.beside() is None
    for grant in grants[1:]:
        assert side.grants.in_flight
        present(grant).settle(SIZE, SIZE, START, START)
    assert side.grants.in_flight
    present(grants[0]).settle(SIZE, SIZE, START, START)
    assert not side.grants.in_flight
    assert side.begin() is grants[0], "that of the last fetch"


@pytest.mark.parametrize("limit", [10.0, 2e6])
def test_no_fetch_goes_beside_others_without_tokens_for_all(limit: float) -> None:
    side = Side(limit)
    grant = side.first(0)
    assert side.beside() is None
    assert queue_of(side.bucket).waiting == 0
    grant.settle(0, 0, START, START)
    assert side.begin() is grant


def test_no_fetch_goes_beside_others_if_its_response_is_expected_to_be_large() -> None:
    side = Side()
    side.first(BESIDE_BYTES + 1)
    assert side.beside() is None


def test_a_fetch_that_does_not_go_beside_others_leaves_them_as_they_are() -> None:
    side = Side(4.5e6)
    grants = [side.first(), side.beside(), side.beside()]
    side.bucket.record(2e6, START)
    assert side.beside() is None
    present(grants[0]).settle(SIZE, SIZE, START, START)
    assert side.beside() is None
    assert side.reserved == 2 * SIZE
    side.bucket.give_back(2e6, START)
    assert side.beside() is grants[0]


def test_without_limits_no_fetch_goes_beside_others() -> None:
    side = Side()
    side.first()
    side.engine.configure(Limits({}), START)
    assert side.beside() is None


def test_a_fetch_without_a_limit_needs_no_grant_beside_others() -> None:
    """A follower, or a client with another client id on the same connection."""
    side = Side()
    side.first()
    assert side.grants.beside(side.view(replica_id=2), side.client, START) is None
    assert present(side.beside()).granted


def test_the_places_of_earlier_fetches_are_given_up() -> None:
    """A muted client has one place, that of its next fetch."""
    side = Side()
    grants = [side.first(), side.beside(), side.beside()]
    for grant in grants:
        present(grant).settle(SIZE, SIZE, START + 1.0, START)
    assert queue_of(side.bucket).waiting == 3
    assert side.begin() is grants[-1]
    assert queue_of(side.bucket).waiting == 1


def test_grants_serve_further_fetches_in_flight() -> None:
    side = Side()
    grants = [side.first(), present(side.beside()), present(side.beside())]
    for grant in grants:
        grant.settle(SIZE, SIZE, START, START)
    again = [present(side.begin())]
    again[0].ask(START)
    again += [present(side.beside()), present(side.beside())]
    assert {id(grant) for grant in again} == {id(grant) for grant in grants}
    assert side.reserved == 3 * SIZE


def test_grants_are_forgotten_when_fetches_come_one_by_one() -> None:
    side = Side()
    grants = [side.first(), present(side.beside()), present(side.beside())]
    for grant in grants:
        grant.settle(SIZE, SIZE, START, START)
    for _ in range(2):
        last = present(side.begin())
        last.ask(START)
        last.settle(SIZE, SIZE, START, START)
    assert side.first() is last
    assert side.beside() not in grants


def test_the_end_of_the_connection_charges_what_is_in_flight() -> None:
    side = Side()
    side.first()
    side.beside()
    before = tokens_left(side.bucket, START)
    side.grants.end()
    assert (side.reserved, tokens_left(side.bucket, START)) == (0.0, before - 2 * SIZE)
