import sys
from collections.abc import Sequence
from time import process_time

import pytest

from proxy.quota.fetch.places import FetchPlaces
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.fetch_tokens import queue_of
from proxy.quota.measure.rate_rule import RateRule

LIMIT = 1000.0
PACED = RateRule(burst_seconds=1.0)


def bucket(rule: RateRule = PACED, limit: float = LIMIT) -> Bucket:
    return Bucket(quota="consumer_byte_rate", user="u", limit=limit, rule=rule, now=0.0)


def some(count: int) -> list[Bucket]:
    return [bucket() for _ in range(count)]


def fetch(places: FetchPlaces, *buckets: Bucket, lists: Sequence[list[Bucket]] = ()) -> None:
    """Begin with the next fetch, with these buckets and then those of each list."""
    places.begin()
    for one in buckets:
        places.add(one)
    for listed in lists:
        places.add_all(listed)
    places.complete()
    assert [ticket.queue for ticket in places.tickets] == [queue_of(one) for one in places.buckets]


def wait(places: FetchPlaces) -> None:
    for ticket in places.tickets:
        ticket.queue.wait(ticket, 9.0)


def test_the_time_of_a_fetch_is_proportional_to_its_buckets() -> None:
    def seconds(count: int) -> float:
        buckets = some(count)
        taken = []
        for _ in range(3):
            began = process_time()
            places = FetchPlaces()
            fetch(places, *buckets)
            fetch(places, *buckets)
            fetch(places, *reversed(buckets))
            taken.append(process_time() - began)
        return min(taken)

    assert seconds(6400) < 16 * 4 * seconds(400)


@pytest.mark.parametrize(
    "later",
    [(0, 1, 2), (0, 1), (0,), (), (0, 1, 2, 3), (1, 2), (2, 0, 1), (3, 0), (0, 3, 2), (2, 1, 0), (3, 4, 5)],
)
@pytest.mark.parametrize("rounds", [1, 2])
def test_tickets_are_kept_whatever_buckets_the_next_fetch_has(later: tuple[int, ...], rounds: int) -> None:
    buckets = some(6)
    places = FetchPlaces()
    fetch(places, *buckets[:3])
    wait(places)
    for _ in range(rounds):
        fetch(places, *buckets[:3])
    tickets = list(places.tickets)
    assert places.has(buckets[0])
    fetch(places, *[buckets[at] for at in later])
    assert places.buckets == [buckets[at] for at in later]
    kept = [places.tickets[at] is tickets[number] for at, number in enumerate(later) if number < 3]
    assert all(kept)
    waiting = [queue_of(one).waiting for one in buckets]
    assert waiting == [at < 3 and at in later for at in range(6)], "given up in the buckets of others"
    assert [places.has(one) for one in buckets] == [at in later for at in range(6)]
    assert places.any == bool(later)


def test_observed_and_unlimited_buckets_get_no_ticket() -> None:
    places = FetchPlaces()
    fetch(places, bucket(RateRule(burst_seconds=1.0, mode=OBSERVE)), bucket(limit=UNLIMITED))
    assert (places.any, places.buckets, places.tickets) == (False, [], [])


def test_the_same_list_again_has_the_same_tickets() -> None:
    own, listed = bucket(), some(3)
    places = FetchPlaces()
    fetch(places, own, lists=[listed])
    tickets = list(places.tickets)
    assert places.count_of(listed) == 3
    for _ in range(2):
        fetch(places, own, lists=[listed])
        assert (places.tickets, places.count_of(listed)) == (tickets, 3)
        assert places.count_of(list(listed)) == 0, "another list"
    listed.append(bucket())
    assert places.count_of(listed) == 3, "the fetch does not have the new bucket"
    fetch(places, own, lists=[listed])
    assert (places.tickets[:4], places.count_of(listed), len(places.buckets)) == (tickets, 4, 5)


@pytest.mark.parametrize("before", [[], [0], [1], [0, 1]])
@pytest.mark.parametrize("between", [[], [0], [1], [0, 1], [2]])
def test_a_list_is_found_after_fetches_with_other_buckets(before: list[int], between: list[int]) -> None:
    """The list of an earlier fetch tells nothing once its buckets are at other indices, or are gone."""
    single = some(2)
    listed = some(3)
    every = single + listed
    places = FetchPlaces()
    fetch(places, *[single[at] for at in before], lists=[listed])
    fetch(places, *[every[at] for at in between])
    for others in (before, between[:1]):
        fetch(places, *[every[at] for at in others if at < 2], lists=[listed])
        assert places.buckets == [every[at] for at in others if at < 2] + listed
        assert places.count_of(listed) == 3


def test_two_lists_are_added_one_after_the_other() -> None:
    first, second = some(2), some(3)
    places = FetchPlaces()
    for _ in range(2):
        fetch(places, lists=[first, second])
        assert places.buckets == first + second
        assert (places.count_of(first), places.count_of(second)) == (2, 3)
    fetch(places, lists=[second, first])
    assert places.buckets == second + first
    first.append(bucket())
    fetch(places, lists=[second, first])
    assert (places.buckets, places.count_of(first)) == (second + first, 3)
    fetch(places, lists=[second])
    assert (places.buckets, places.count_of(first), places.count_of(second)) == (second, 0, 3)


def test_a_list_with_a_bucket_that_is_not_enforced_is_not_known() -> None:
    listed = [bucket(), bucket(limit=UNLIMITED), bucket()]
    places = FetchPlaces()
    for _ in range(2):
        fetch(places, lists=[listed])
        assert (places.buckets, places.count_of(listed)) == ([listed[0], listed[2]], 0)


def test_the_buckets_of_a_response_are_expected_in_their_order() -> None:
    own, *partitions = some(4)
    places = FetchPlaces()
    fetch(places, own, *partitions[:2])
    assert [places.expects(one) for one in partitions] == [True, True, False]
    assert [places.has(one) for one in partitions] == [True, True, False]
    assert not places.expects(partitions[0]), "has() tells in another order"
    fetch(places, own, *partitions[:2])
    assert places.expects(partitions[0]), "the next response begins with the first"
    assert not FetchPlaces().expects(own)


def test_after_the_end_no_queue_has_a_ticket() -> None:
    places = FetchPlaces()
    fetch(places, *some(2))
    before = [sys.getrefcount(ticket) for ticket in places.tickets]
    for ticket in places.tickets:
        ticket.queue.grant(ticket, 0.0)
        ticket.queue.renew(ticket, 1.0, 1.0)
    del ticket
    places.leave()
    assert [sys.getrefcount(ticket) for ticket in places.tickets] == before
