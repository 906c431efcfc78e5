"""Restarts: by which signal, and where their time goes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.soak import restarts
from bench.soak.restarts import Restart, _times, hand_over, restart


class Proxy:
    """A proxy's process that notes what is done to it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.process = SimpleNamespace(kill=lambda: self._note("kill"), wait=lambda _: self._note("wait"))

    def _note(self, what: str) -> "Proxy":
        self.calls.append(what)
        return self

    def stop(self) -> None:
        self._note("stop")

    def start(self) -> "Proxy":
        return self._note("start")

    def wait_ready(self) -> None:
        self._note("ready")


@pytest.mark.parametrize(("how", "ended"), [("SIGTERM", ["stop"]), ("SIGKILL", ["kill", "wait"])])
def test_the_next_process_starts_when_the_last_has_ended(
    monkeypatch: pytest.MonkeyPatch, how: str, ended: list[str]
) -> None:
    proxy = Proxy()
    monkeypatch.setattr(restarts, "go_on", lambda writers: proxy.calls.append("went on"))
    found = restart(cast("Any", proxy), how, [])
    assert proxy.calls == [*ended, "start", "ready", "went on"]
    assert found.how == how
    assert found.signalled <= found.ended <= found.ready <= found.recovered


def test_a_successor_is_ready_before_the_old_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, list[str]]] = []
    old, new = Proxy(), Proxy()
    monkeypatch.setattr(old, "stop", lambda: calls.append(("stop", list(new.calls))))
    monkeypatch.setattr(restarts, "go_on", lambda writers: calls.append(("went on", [])))
    found = hand_over(cast("Any", old), cast("Any", new), [])
    assert calls == [("stop", ["start", "ready"]), ("went on", [])]
    assert found.signalled <= found.ended <= found.recovered


def test_times_are_of_the_restarts_by_one_signal() -> None:
    """Acknowledgements came every second, but for the four after the first restart."""
    times = [0.0, 1.0, 2.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    writer = SimpleNamespace(name="client", done=SimpleNamespace(times=times))
    done = [Restart("SIGTERM", 2.0, 2.5, 4.5, 6.5), Restart("SIGKILL", 8.0, 8.1, 9.0, 10.5)]
    found = _times("SIGTERM", done, cast("Any", [writer]))
    assert found["shutdown"]["max"] == 0.5
    assert found["start"]["max"] == 2.0
    assert found["stall"]["client"] == {"p50": 4.0, "p90": 4.0, "p99": 4.0, "max": 4.0}
    assert _times("SIGKILL", done, cast("Any", [writer]))["stall"]["client"]["max"] == 1.0
    assert _times("SIGKILL", [], cast("Any", [writer]))["stall"] == {"client": {}}
