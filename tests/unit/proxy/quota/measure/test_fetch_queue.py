import sys
from random import Random

import pytest

from proxy.quota.measure.fetch_queue import COUNTED_AT_MOST, HOLD_SECONDS, FetchQueue, Ticket


def ticket(size: float = 10.0, start: float = 0.0) -> Ticket:
    made = Ticket(FetchQueue(), start)
    made.size = size
    return made


def test_a_reservation_ends_with_its_response_or_after_its_time() -> None:
    queue = FetchQueue()
    first, second = ticket(10.0), ticket(5.0)
    queue.grant(first, 1.0)
    queue.grant(second, 1.1)
    assert queue.reserved(1.1) == 15.0
    assert queue.end(first) == 10.0
    assert queue.end(first) == 0.0
    assert queue.reserved(1.1) == 5.0
    assert queue.reserved(1.1 + HOLD_SECONDS) == 0.0
    assert queue.end(second) == 0.0


def test_reservations_end_in_any_order() -> None:
    queue = FetchQueue()
    tickets = [ticket(float(1 << number)) for number in range(5)]
    for one in tickets:
        queue.grant(one, 0.0)
    left = 31.0
    for number in (2, 0, 4, 1, 3):
        left -= float(1 << number)
        assert queue.end(tickets[number]) == float(1 << number)
        assert queue.reserved(0.0) == left
    queue.renew(tickets[2], 8, 4)
    queue.grant(tickets[2], 1.0)
    assert queue.reserved(1.0) == 8.0


@pytest.mark.parametrize("seed", range(20))
def test_the_reserved_bytes_are_those_of_the_fetches_in_flight(seed: int) -> None:
    random = Random(seed)
    queue = FetchQueue()
    tickets = [ticket() for _ in range(3)]
    in_flight: dict[Ticket, tuple[float, float]] = {}
    now = 0.0
    for _ in range(200):
        one = random.choice(tickets)
        step = random.random()
        if one not in in_flight:
            one.size = float(random.randrange(100))
            queue.grant(one, now)
            in_flight[one] = (one.size, now + HOLD_SECONDS)
        elif step < 0.2:
            size, until = in_flight.pop(one)
            assert queue.end(one) in ((size,) if now < until else (size, 0.0))
        else:
            queue.renew(one, 1.0, 1.0)
            del in_flight[one]
        now += random.choice([0.0, 0.01, 0.2])
        assert queue.reserved(now) == sum(size for size, until in in_flight.values() if until > now)
        assert queue.unused == (not any(until > now for _, until in in_flight.values()))


def test_a_queue_keeps_no_ticket_that_has_ended() -> None:
    queue = FetchQueue()
    one = ticket()
    before = sys.getrefcount(one)
    for _ in range(2):
        queue.grant(one, 0.0)
        queue.renew(one, 1.0, 1.0)
    assert queue.end(one) == 0.0
    assert sys.getrefcount(one) == before


def test_the_line_is_ordered_by_what_connections_have_got() -> None:
    queue = FetchQueue()
    large, small = ticket(10.0, start=100.0), ticket(3.0, start=50.0)
    queue.wait(large, 9.0)
    queue.wait(small, 9.0)
    assert queue.ahead(small, 0.0) == 0.0
    assert queue.ahead(large, 0.0) == 3.0
    assert queue.ahead(None, 0.0) == 13.0
    assert queue.ahead(ticket(start=60.0), 0.0) == 3.0, "of one that is not in it yet"
    queue.grant(small, 0.0)
    assert (queue.ahead(large, 0.0), queue.waiting) == (0.0, 1)


def test_connections_without_records_so_far_count_as_one_fetch_before_others() -> None:
    queue = FetchQueue()
    reader, other = ticket(10.0), ticket(7.0)
    for each in (reader, other):
        queue.renew(each, each.size, 1.0)
    new = [ticket(8.0) for _ in range(5)]
    queue.grant(new[0], 0.0)
    assert queue.before(reader, 0.0) == 8.0, "less than one fetch of the reader"
    for each in (other, *new[1:]):
        queue.wait(each, 9.0)
    queue.wait(reader, 9.0)
    assert queue.before(reader, 0.0) == 7.0 + 10.0, "one fetch, instead of five that reserve or wait"
    assert queue.before(ticket(10.0, start=9.0), 0.0) == 8.0 + 7.0 + 4 * 8.0 + 10.0, "for a new one all count"
    assert queue.end(new[0]) == 8.0
    assert queue.before(other, 0.0) == 7.0


def test_who_does_not_come_back_loses_the_place() -> None:
    queue = FetchQueue()
    first, second = ticket(10.0), ticket(10.0)
    queue.wait(first, 1.0)
    queue.wait(second, 2.0)
    assert queue.ahead(second, 0.9) == 10.0
    assert queue.ahead(second, 1.0) == 0.0
    assert queue.waiting == 1


def test_a_newcomer_goes_to_the_end_of_the_line() -> None:
    queue = FetchQueue()
    queue.wait(ticket(10.0, start=500.0), 9.0)
    queue.wait(ticket(10.0, start=100.0), 9.0)
    newcomer = queue.newcomer()
    queue.wait(newcomer, 9.0)
    assert queue.ahead(newcomer, 0.0) == 20.0


def test_who_was_idle_gains_nothing_by_it() -> None:
    """It begins where the others are, and not where it was."""
    queue = FetchQueue()
    idle, busy = ticket(1.0, start=0.0), ticket(1.0, start=1000.0)
    queue.grant(busy, 0.0)
    queue.wait(idle, 9.0)
    assert idle.start == 1000.0


def test_the_next_fetch_begins_where_the_last_one_ended() -> None:
    queue = FetchQueue()
    first = ticket(10.0, start=40.0)
    queue.renew(first, 300, 300)
    assert (first.size, first.start) == (300.0, 340.0)
    queue.renew(first, 200, 0)
    assert (first.size, first.start) == (200.0, 340.0), "nothing was delivered"


def test_the_next_fetch_has_neither_the_place_nor_the_reservation_of_the_last_one() -> None:
    queue = FetchQueue()
    first, waiting = ticket(10.0), ticket(20.0)
    queue.grant(first, 0.0)
    queue.wait(waiting, 9.0)
    assert queue.any_waits
    for one in (first, waiting):
        queue.renew(one, 5.0, 5.0)
    assert (queue.reserved(0.0), queue.ahead(None, 0.0), queue.any_waits) == (0.0, 0.0, False)
    assert (first.granted, waiting.in_line) == (False, False)


def test_a_long_line_is_estimated() -> None:
    queue = FetchQueue()
    many = [ticket(2.0) for _ in range(10 * COUNTED_AT_MOST)]
    for one in many:
        queue.wait(one, 9.0)
    assert queue.ahead(many[-1], 0.0) == pytest.approx(2.0 * len(many))
    assert queue.ahead(many[1], 0.0) == 2.0


def test_first_responses_are_averaged_from_what_was_assumed() -> None:
    queue = FetchQueue()
    for _ in range(50):
        queue.first_response(100.0, 5000.0)
    assert queue.first_bytes == pytest.approx(100.0, rel=0.1)
    queue.first_response(900.0, 5000.0)
    assert queue.first_bytes > 150.0
