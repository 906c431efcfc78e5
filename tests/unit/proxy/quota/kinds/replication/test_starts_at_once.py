"""How many replicas start with one fetch, by how long their follower takes."""

from random import Random

import pytest

from proxy.quota.kinds.replication.starts_at_once import FETCHES, LONGEST_SECONDS, MOST, ROUNDS, StartsAtOnce


def found(starts: StartsAtOnce, of_fetch: float, of_replica: float, rounds: int) -> list[int]:
    """The numbers by round, if a fetch takes `of_fetch` seconds, and each start `of_replica` more."""
    numbers = []
    for _ in range(rounds):
        numbers.append(starts.count)
        for _ in range(FETCHES):
            starts.learn(starts.count, of_fetch + starts.count * of_replica)
    return numbers


@pytest.mark.parametrize(
    ("of_fetch", "of_replica", "most"),
    [(0.05, 0.0, 16), (0.05, 0.001, 16), (0.05, 0.003, 8), (0.01, 0.002, 4)],
)
def test_the_number_doubles_while_the_fetches_take_little_longer(
    of_fetch: float, of_replica: float, most: int
) -> None:
    numbers = found(StartsAtOnce(), of_fetch, of_replica, 10 * ROUNDS)
    assert numbers[:2] == [1, 2]
    assert set(numbers[ROUNDS::ROUNDS]) == {1}, "how long one takes is measured again"
    others = [number for at, number in enumerate(numbers) if at % ROUNDS]
    assert sum(number == most for number in others) > 0.7 * len(others)
    assert max(numbers) <= min(2 * most, MOST)


def test_one_starts_if_the_disk_takes_most_of_the_time() -> None:
    numbers = found(StartsAtOnce(), 0.002, 0.04, 10 * ROUNDS)
    assert set(numbers) == {1, 2}
    assert numbers.count(2) <= 10, "it is tried from time to time"


def test_a_busy_machine_makes_some_fetches_longer_and_changes_nothing() -> None:
    random, starts, numbers = Random(1), StartsAtOnce(), []
    for _ in range(200):
        numbers.append(starts.count)
        starts.learn(starts.count, 0.02 * (1.0 + random.expovariate(1.0)))
    assert sum(number >= MOST // 2 for number in numbers) > 100


def test_a_disk_that_becomes_slow_ends_the_round() -> None:
    starts = StartsAtOnce()
    found(starts, 0.05, 0.0, 5)
    numbers = []
    for _ in range(3):
        numbers.append(starts.count)
        starts.learn(starts.count, starts.count * LONGEST_SECONDS / 7)
    assert numbers == [16, 8, 4]


def test_a_fetch_with_fewer_starts_says_nothing() -> None:
    starts = StartsAtOnce()
    found(starts, 0.05, 0.0, 3)
    for _ in range(10 * FETCHES):
        starts.learn(1, 0.01)
    assert starts.count == 8
