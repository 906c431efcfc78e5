"""What is made of the samples of a move."""

from argparse import Namespace
from dataclasses import replace

from bench.replication.kip_73 import OTHERS, PROXY, SAME, plans, report
from bench.replication.load import LoadSamples
from bench.replication.move import LEADER, Moved, Plan

PLAN = Plan("t", 2, 40, 4 << 20, (LEADER,), ((1, 2),), ((1, 3),), "")
OPTIONS = {"partitions": 100, "megabytes": 200, "long_megabytes": 1000, "rate": 4 << 20}


def test_load_meets_short_moves_and_long_ones_and_each_route() -> None:
    loaded = [
        (plan.megabytes, SAME if plan.load == plan.topic else OTHERS, len(plan.before), len(plan.after))
        for _, plan in plans(Namespace(brokers=3, **OPTIONS))
        if plan.load
    ]
    one_to_one = [(200, OTHERS), (200, SAME), (1000, OTHERS), (1000, SAME)]
    assert loaded[:4] == [(*case, 1, 1) for case in one_to_one]
    assert loaded[4:] == [(200, OTHERS, 1, 2), (200, OTHERS, 2, 2)]


def test_two_brokers_have_one_route() -> None:
    assert {(plan.before, plan.after) for _, plan in plans(Namespace(brokers=2, **OPTIONS))} == {
        (((1,),), ((1, 2),))
    }


def test_the_report() -> None:
    rate = PLAN.rate
    calm = LoadSamples([(0.0, 0.01)] * 100, [(0.0, 1.0), (0.1, 3.0)])
    busy = LoadSamples([(0.0, 0.015)] * 100, [(0.0, 2.0), (0.1, 3.0)])
    moved = Moved(10.0, [2.0 * rate, *[rate] * 9], calm, busy, True)
    loaded = replace(PLAN, load="others")
    lines = report([("leader", loaded, {PROXY: moved}), ("both", PLAN, {PROXY: Moved(10.0, [rate] * 9)})])
    assert "| both | proxy | 1.00 | 0.00 | 1.00 | 1.00 |  |  |  |  | NO |" in lines
    assert "| leader | proxy | 1.00 | 0.00 | 1.00 | 1.00 | 15.00 | 10.00 | 1.50 | 1.25 | yes |" in lines
