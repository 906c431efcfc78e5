"""Reassignment: KIP-73's formulas, by hand."""

import pytest

from pipeline.errors import InputError
from pipeline.transforms.reassignment import Cluster, Move, Partition, plan

GIB = 1 << 30
CLUSTER = Cluster(
    [1, 2, 3],
    [
        Partition("t", 0, [1, 2], 6 * GIB, 50_000),
        Partition("t", 1, [2, 3], 3 * GIB, 20_000),
        Partition("t", 2, [3, 1], 3 * GIB, 10_000),
        Partition("u", 0, [1], 0, 5_000),
    ],
    [Move("t", 0, [2, 3]), Move("t", 1, [3, 2])],
)
"""Broker 1 takes in 65,000 B/s, 2 70,000, 3 30,000. One of four partitions moves: a new leader moves none."""


def test_the_formulas() -> None:
    found = plan(CLUSTER, throttle=10_000_000, network=50_000_000)
    assert found.move_ratio == 0.25
    assert found.bytes_to_move == 6 * GIB
    assert found.throttle_min == 70_000
    assert found.throttle_max == 50_000_000 - 70_000 / 2
    # Mean of the brokers' log sizes: (9 + 9 + 6) / 3 GiB = 8 GiB.
    assert found.move_seconds == pytest.approx(0.25 * 8 * GIB * 3 / (10_000_000 - 70_000))
    assert (found.feasible, found.reason) == (True, "")
    assert found.fetch_response_max_bytes == 11 * 10_000_000 - 1


def test_the_throttle_that_ends_in_time() -> None:
    found = plan(CLUSTER, within=600)
    assert found.throttle == -(-(70_000 * 600 + 6 * GIB) // 600)
    assert found.move_seconds == pytest.approx(600, rel=1e-6)
    assert found.feasible
    assert found.throttle_max is None


def test_an_hour_where_nothing_is_asked_for() -> None:
    assert plan(CLUSTER).move_seconds == pytest.approx(3600, rel=1e-6)


def test_a_throttle_below_the_inbound_rate_never_ends() -> None:
    found = plan(CLUSTER, throttle=70_000)
    assert (found.feasible, found.move_seconds) == (False, None)
    assert "broker 2 " in found.reason


def test_a_throttle_that_the_network_does_not_carry() -> None:
    found = plan(CLUSTER, within=60, network=1_000_000)
    assert not found.feasible
    assert found.throttle_max == 965_000
    assert "broker 2 " in found.reason


def test_a_throttle_that_takes_too_long() -> None:
    found = plan(CLUSTER, throttle=1_000_000, within=60)
    assert not found.feasible
    assert " 60 s " in found.reason


def test_nothing_to_move() -> None:
    found = plan(Cluster([1, 2], [Partition("t", 0, [1], 100, 0)], []), within=10)
    assert (found.move_ratio, found.bytes_to_move, found.move_seconds) == (0.0, 0, 0.0)


@pytest.mark.parametrize(
    ("move", "named"),
    [
        (Move("x", 0, [1]), r"x-0\b"),
        (Move("t", 0, [1, 9]), r"t-0 .* 9\b"),
    ],
)
def test_moves_that_do_not_fit(move: Move, named: str) -> None:
    with pytest.raises(InputError, match=named):
        plan(Cluster(CLUSTER.brokers, CLUSTER.partitions, [move]))


@pytest.mark.parametrize("rate", [0.0, 5_000.0, 0.5])
def test_an_empty_partition_can_move(rate: float) -> None:
    partitions = [Partition("t", 0, [1], 0, rate), Partition("t", 1, [2], 0, 0.0)]
    found = plan(Cluster([1, 2, 3], partitions, [Move("t", 1, [3])]))
    assert (found.feasible, found.move_seconds, found.expected_seconds) == (True, 0.0, 0.0)
    assert found.throttle > rate


def test_a_partition_counts_once() -> None:
    partitions, moves = CLUSTER.partitions, CLUSTER.moves
    for cluster in (
        Cluster(CLUSTER.brokers, partitions, [*moves, moves[0]]),
        Cluster(CLUSTER.brokers, [*partitions, partitions[0]], moves),
    ):
        with pytest.raises(InputError, match=r"t-0\b"):
            plan(cluster)


def test_brokers_move_at_the_same_time_and_only_new_replicas() -> None:
    """Six brokers, each of which leads one partition and gets one replica. The formula counts 18 replicas."""
    brokers = list(range(6))
    partitions = [
        Partition("t", each, [each, (each + 1) % 6, (each + 2) % 6], 10**9, 0.0) for each in brokers
    ]
    moves = [Move("t", each, [each, (each + 1) % 6, (each + 3) % 6]) for each in brokers]
    found = plan(Cluster(brokers, partitions, moves), throttle=10**6)
    assert (found.move_seconds, found.expected_seconds) == (18_000, 1_000)


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        # Broker 1 sends; broker 3 receives.
        ([[1, 2]], [[1, 3]], 10),
        # The leader sends both new replicas, whether it stays or not.
        ([[1]], [[1, 2, 3]], 20),
        ([[1]], [[2, 3]], 20),
        # Two leaders, one receiver.
        ([[1], [2]], [[3], [3]], 20),
        # Each broker sends and receives.
        ([[1, 2], [2, 3], [3, 1]], [[1, 3], [2, 1], [3, 2]], 10),
        # No new replica: another leader, or fewer replicas.
        ([[1, 2]], [[2, 1]], 0),
        ([[1, 2]], [[2]], 0),
    ],
)
def test_the_slowest_broker_decides(before: list[list[int]], after: list[list[int]], seconds: float) -> None:
    partitions = [Partition("t", number, replicas, 10**7, 0.0) for number, replicas in enumerate(before)]
    moves = [Move("t", number, replicas) for number, replicas in enumerate(after)]
    assert plan(Cluster([1, 2, 3], partitions, moves), throttle=10**6).expected_seconds == seconds


def test_the_leader_sends_whoever_it_is() -> None:
    partitions = [Partition("t", 0, [1, 2], 10**7, leader=2), Partition("t", 1, [2, 1], 10**7)]
    moves = [Move("t", number, [1, 2, 3]) for number in range(2)]
    cluster = Cluster([1, 2, 3, 4], partitions, [moves[0], Move("t", 1, [1, 2, 4])])
    assert plan(cluster, throttle=10**6).expected_seconds == 20


def test_producers_add_to_what_moves() -> None:
    """The leader sends what they add to the new replica and to the follower, which is in sync."""
    partitions = [Partition("t", 0, [1, 2], 10**7, 200_000.0)]
    cluster = Cluster([1, 2, 3], partitions, [Move("t", 0, [1, 3])])
    assert plan(cluster, throttle=10**6).expected_seconds == pytest.approx(10**7 / (10**6 - 2 * 200_000))
    found = plan(cluster, throttle=390_000)
    assert found.move_seconds is not None
    assert (found.expected_seconds, found.feasible) == (None, False)
    assert "400,000 B/s" in found.reason


def test_a_large_partition_takes_longer_than_the_formula_says() -> None:
    partitions = [Partition("t", 0, [1], 10**9), *(Partition("u", number, [2]) for number in range(9))]
    found = plan(Cluster([1, 2], partitions, [Move("t", 0, [2])]), throttle=10**6, within=200)
    assert (found.move_seconds, found.expected_seconds, found.feasible) == (100, 1000, False)
    assert "broker 1 " in found.reason
    assert "200 s" in found.reason


def test_without_inbound_rates_the_least_throttle_is_unknown() -> None:
    move = [Move("t", 0, [2])]
    found = plan(Cluster([1, 2], [Partition("t", 0, [1], 10**7)], move), throttle=10**6)
    assert (found.throttle_min, found.move_seconds, found.feasible) == (None, 10, True)
    found = plan(Cluster([1, 2], [Partition("t", 0, [1], 10**7, 0.0)], move), throttle=10**6)
    assert found.throttle_min == 0


@pytest.mark.parametrize(("throttle", "network"), [(10**6, 10**8), (10**8, None), (10**8, 10**8)])
def test_responses_of_500_brokers_at_the_same_time(throttle: float, network: float | None) -> None:
    """KIP-73's example: together they have to fit into a window."""
    found = plan(Cluster(list(range(500)), [], []), throttle=throttle, network=network)
    assert found.fetch_response_max_bytes == pytest.approx(2.2e6, rel=1e-6)
