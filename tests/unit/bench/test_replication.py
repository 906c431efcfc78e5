"""What is made of the samples of a move."""

from argparse import Namespace
from dataclasses import replace

import pytest

from bench.replication import OTHERS, PROXY, SAME, plans, report
from bench.replication_load import Felt
from bench.replication_move import LEADER, Moved, Plan, _by_second, _moving

PLAN = Plan("t", 2, 40, 4 << 20, (LEADER,), (1, 2), (1, 3), "")


def test_a_plan_moves_to_the_broker_that_is_new() -> None:
    assert PLAN.target == 3


def test_load_meets_short_moves_and_long_ones() -> None:
    options = Namespace(brokers=3, partitions=100, megabytes=200, long_megabytes=1000, rate=4 << 20)
    loaded = [
        (plan.megabytes, SAME if plan.load == plan.topic else OTHERS)
        for _, plan in plans(options)
        if plan.load
    ]
    assert loaded == [(200, OTHERS), (200, SAME), (1000, OTHERS), (1000, SAME)]


def test_seconds_count_from_the_first_byte_to_the_last() -> None:
    samples = [(0.0, 0), (1.0, 0), (2.0, 10), (2.5, 15), (3.1, 30), (4.2, 50), (9.0, 50)]
    began, ended = _moving(samples)
    assert (began, ended) == (2.0, pytest.approx(4.2))
    assert _by_second(samples, began, ended) == [15, 15]


def test_the_report() -> None:
    rate = PLAN.rate
    calm = Felt([(0.0, 0.01)] * 100, [(0.0, 1.0), (0.1, 3.0)])
    busy = Felt([(0.0, 0.015)] * 100, [(0.0, 2.0), (0.1, 3.0)])
    moved = Moved(10.0, [2.0 * rate, *[rate] * 9], calm, busy, True)
    loaded = replace(PLAN, load="others")
    lines = report([("leader", loaded, {PROXY: moved}), ("both", PLAN, {PROXY: Moved(10.0, [rate] * 9)})])
    assert "| both | proxy | 1.00 | 0.00 | 1.00 | 1.00 |  |  |  |  | NO |" in lines
    assert "| leader | proxy | 1.00 | 0.00 | 1.00 | 1.00 | 15.00 | 10.00 | 1.50 | 1.25 | yes |" in lines


def test_what_was_felt_is_cut_to_the_move() -> None:
    felt = Felt([(1.0, 0.1), (2.0, 0.2), (3.0, 0.3)], [(0.5, 1.0), (2.5, 2.0)])
    assert felt.between(2.0, 2.9) == Felt([(2.0, 0.2)], [(2.5, 2.0)])
