"""Clients go from process to process, and what they use is counted."""

import pytest

from bench.sharing.simulated_crowd import LIMIT, Crowd, Plan

PLAN = Plan(processes=3, entities=10, hot=2)


@pytest.fixture
def crowd() -> Crowd:
    return Crowd(PLAN.seed, limit=LIMIT, plan=PLAN)


def connections(crowd: Crowd, entity: int) -> int:
    return sum(process.connected(entity) for process in crowd.crowd)


def test_clients_of_a_killed_process_go_to_another(crowd: Crowd) -> None:
    before = {entity: connections(crowd, entity) for entity in crowd.hot}
    victim = max(crowd.serving, key=lambda process: process.all_connected)
    crowd.kill(victim)
    assert victim not in crowd.serving
    assert victim.all_connected == 0
    assert {entity: connections(crowd, entity) for entity in crowd.hot} == before


def test_all_clients_of_an_entity_move_to_one_process(crowd: Crowd) -> None:
    before, to = connections(crowd, 1), crowd.serving[-1]
    crowd.move(1, to)
    assert to.connected(1) == connections(crowd, 1) == before


def test_use_is_counted_by_tenths_of_a_second(crowd: Crowd) -> None:
    first = int(crowd.now * 10 + 1e-6)
    crowd.go_on(2.0)
    tenths = crowd.used(0, first, first + 20)
    assert 0.8 < sum(tenths) / (2 * LIMIT) < 1.2
    assert min(tenths) >= 0.0
