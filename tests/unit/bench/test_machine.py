"""The machine's facts, and a load that makes figures doubtful."""

import os
from typing import Any, cast

import pytest

from bench import machine
from bench.peers.haproxy import HaProxy


class HaProxyHere(HaProxy):
    version = "3.0.1"

    def __init__(self) -> None:
        """It is not started."""


@pytest.mark.parametrize(("load", "doubtful"), [(0.5, 0), (0.51, 1), (4.0, 1)])
def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch, load: float, doubtful: int) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert len(machine.warnings()) == doubtful


def test_haproxys_version_is_a_fact_where_it_is_a_peer() -> None:
    assert "haproxy" not in machine.facts([])
    facts = machine.facts([cast("Any", object()), HaProxyHere()])
    assert facts["haproxy"] == "3.0.1"
    assert facts["cpu"].startswith(f"{os.cpu_count()} x ")
