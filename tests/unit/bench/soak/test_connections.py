"""Thousands of connections: what fails the scenario."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self, cast

import pytest

from bench.soak import connections
from bench.soak.connections import (
    ALONE_SECONDS,
    EVERY_SECONDS,
    LONG_MS,
    SCENARIO,
    SECONDS,
    SHORT_BUSY,
    SHORT_IDLE,
)
from bench.soak.scenario import Outcome, Run


class Proxy:
    """A process that stands for the proxy: this one."""

    process = SimpleNamespace(pid=os.getpid())

    def __init__(self, folder: Path, upstream: str, *, settings: dict[str, Any]) -> None:
        self.limits = settings["limits"]
        assert self.limits["max_connections"] > SHORT_BUSY + SHORT_IDLE

    def broker_port(self, node_id: int) -> int:
        return 9000 + node_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def outcome(monkeypatch: pytest.MonkeyPatch, folder: Path, **lost: int) -> Outcome:
    """Of a short run in which crowds of this size lose so many connections."""
    by_size = {SHORT_IDLE: lost.get("idle", 0), SHORT_BUSY: lost.get("busy", 0), 1: lost.get("neighbour", 0)}

    @contextmanager
    def crowd(address: str, topic: str, count: int, every: float = 0.0) -> Iterator[Any]:
        assert address == "127.0.0.1:9001"
        yield SimpleNamespace(said={"lost": by_size[count], "latency": {"p50": every}})

    monkeypatch.setattr(connections, "crowd", crowd)
    monkeypatch.setattr(connections, "ProxyProcess", Proxy)
    monkeypatch.setattr(connections, "make_topic", lambda kafka, topic: None)
    monkeypatch.setattr(connections, "SHORT_SECONDS", 0)
    monkeypatch.setattr(connections, "ALONE_SECONDS", 0)
    kafka = cast("Any", SimpleNamespace(bootstrap="host:1"))
    return SCENARIO.run(Run(kafka, folder, short=True))


def test_figures_are_of_each_crowd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = outcome(monkeypatch, tmp_path)
    assert found.failures == []
    assert (found.figures["idle"], found.figures["busy"]) == (SHORT_IDLE, SHORT_BUSY)
    assert found.figures["neighbour"] == found.figures["neighbour_alone"]
    assert found.figures["busy_requests"]["latency"] != found.figures["neighbour"]


@pytest.mark.parametrize("who", ["idle", "busy", "neighbour"])
def test_a_lost_connection_fails_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, who: str) -> None:
    (failure,) = outcome(monkeypatch, tmp_path, **{who: 3}).failures
    assert failure.startswith(f"3 {who} ")


def test_memory_that_grows_fails_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connections, "growth", lambda samples: 9 << 20)
    (failure,) = outcome(monkeypatch, tmp_path).failures
    assert str(9 << 20) in failure


def test_nobody_closes_idle_connections_during_the_run() -> None:
    assert int(SCENARIO.properties["connections.max.idle.ms"]) == LONG_MS
    assert (SECONDS + ALONE_SECONDS + EVERY_SECONDS) * 1000 < LONG_MS
