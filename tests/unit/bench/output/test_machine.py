"""The machine's facts, and a load that makes figures doubtful."""

import os
import time
from typing import Any, cast

import pytest

from bench.output import machine
from bench.peers.haproxy import HaProxy


class HaProxyHere(HaProxy):
    version = "3.0.1"

    def __init__(self) -> None:
        """It is not started."""


@pytest.mark.parametrize(("load", "doubtful"), [(0.5, 0), (0.51, 1), (4.0, 1)])
def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch, load: float, doubtful: int) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert len(machine.warnings()) == doubtful


@pytest.mark.parametrize(("loads", "waits"), [([0.5], 0), ([2.0, 0.9, 0.4], 2), ([2.0] * 1000, 180)])
def test_the_load_of_what_ran_before_may_fall_first(
    monkeypatch: pytest.MonkeyPatch, loads: list[float], waits: int
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(os, "getloadavg", lambda: (loads[len(slept)], 0.0, 0.0))
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    monkeypatch.setattr(time, "sleep", slept.append)
    machine.await_quiet()
    assert len(slept) == waits


def test_haproxys_version_is_a_fact_where_it_is_a_peer() -> None:
    assert "haproxy" not in machine.facts([])
    facts = machine.facts([cast("Any", object()), HaProxyHere()])
    assert facts["haproxy"] == "3.0.1"
    assert facts["cpu"].startswith(f"{os.cpu_count()} x ")


def test_other_processes_are_counted_without_those_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, own, now = [100.0], [10.0], [0.0]
    monkeypatch.setattr(machine, "_busy_seconds", lambda: busy[0])
    monkeypatch.setattr(machine, "_own_seconds", lambda: own[0])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    others = machine.Others()
    busy[0], own[0], now[0] = 117.0, 26.0, 10.0
    assert others.share() == pytest.approx(0.05)
    assert others.doubts() == []
    busy[0] += 1.0
    assert others.share() == pytest.approx(0.1)
    assert len(others.doubts()) == 1


def test_the_times_of_this_machine_only_grow() -> None:
    first = (machine._busy_seconds(), machine._own_seconds())
    sum(range(1_000_000))
    second = (machine._busy_seconds(), machine._own_seconds())
    assert second[0] >= first[0] > first[1] > 0.0
    assert second[1] > first[1]
