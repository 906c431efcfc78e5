import random

import pytest

from proxy.quota.measure.busy_time import BusyTime

THREADS = 4


def charges(*requests: tuple[float, float]) -> list[float]:
    """What is charged for requests, given as begin and end, in the order of their ends."""
    busy = BusyTime()
    return [busy.charge(began, ended, THREADS) for began, ended in requests]


def test_requests_one_after_the_other_are_charged_their_time() -> None:
    assert charges((1, 3), (3, 4), (9, 9.5)) == [2, 1, 0.5]


def test_no_more_requests_than_threads_are_charged_their_time() -> None:
    assert charges((0, 1), (0, 2), (0, 3), (0, 4)) == [1, 2, 3, 4]


def test_together_they_are_charged_no_more_than_the_time_of_all_threads() -> None:
    assert sum(charges(*((0, 10) for _ in range(100)))) == THREADS * 10


def test_those_that_end_first_are_charged_first() -> None:
    assert sum(charges(*((0, end) for end in range(1, 41)))) == THREADS * 40


def test_time_before_a_request_is_none_to_spare_for_it() -> None:
    """A connection that was busy for an hour has left no time for a flood."""
    calm = [(float(at), float(at + 1)) for at in range(3600)]
    assert sum(charges(*calm, *((3600, 3610) for _ in range(100)))) == 3600 + THREADS * 10


def test_a_request_that_began_long_before_the_others_is_charged_its_time() -> None:
    assert charges((10, 11), (11, 12), (0, 60)) == [1, 1, 60]


@pytest.mark.parametrize("seed", range(50))
def test_it_is_never_less_than_what_the_threads_worked(seed: int) -> None:
    """A broker with a queue and threads, on a simulated clock: at each response, what has been charged is at
    least the time that the threads worked on all requests so far.
    """
    chance = random.Random(seed)
    threads = chance.choice([1, 2, 4])
    free = [0.0] * threads
    done: list[tuple[float, float, float]] = []
    now = 0.0
    for _ in range(chance.choice([50, 400])):
        now += chance.choice([0.0, 0.0, 0.01, chance.expovariate(chance.choice([0.2, 5.0]))])
        thread = min(range(threads), key=free.__getitem__)
        work = chance.expovariate(2.0)
        begun = max(now, free[thread])
        free[thread] = begun + work
        later = chance.choice([0.0, 0.0, chance.expovariate(0.3)])  # other machines respond
        done.append((begun + work + later, now, work))
    done.sort()
    busy = BusyTime()
    charged = worked = 0.0
    for ended, began, work in done:
        charged += busy.charge(began, ended, threads)
        worked += work
        assert charged >= worked - 1e-9
