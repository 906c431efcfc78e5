"""The load by which the rings are optimized."""

from pathlib import Path

import pytest

from bench.peers.peer import Running
from bench.training import CASES, FLOWS, loads, train


def test_the_load_has_both_apis_and_each_flow() -> None:
    found = loads(1.0)
    assert len(found) == len(CASES) * len(FLOWS)
    assert {load.kind for load in found} == {"produce", "fetch"}
    assert {load.partitions for load in found} == {1, 24}


def test_the_proxy_gets_the_load(tmp_path: Path) -> None:
    sent = train("all", Path.cwd(), tmp_path, 0.001)
    assert sent == sum(load.requests for load in loads(0.001))


def test_a_proxy_that_is_killed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has not written its counts."""

    def kill(running: Running, *_: object) -> None:
        assert running.process is not None
        running.process.kill()
        running.process.wait()

    monkeypatch.setattr(Running, "__exit__", kill)
    with pytest.raises(SystemExit, match="did not end by itself"):
        train("nothing", Path.cwd(), tmp_path, 0.001)
