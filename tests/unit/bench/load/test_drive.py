"""The driver against the fake broker."""

import json
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from bench.load.drive import Load, percentile_ms
from bench.rounds import fake_broker


def test_percentiles_are_in_milliseconds() -> None:
    ordered = array("d", [number / 1000 for number in range(1, 101)])
    assert percentile_ms(ordered, 0.5) == pytest.approx(51.0)
    assert percentile_ms(ordered, 0.99) == pytest.approx(100.0)
    assert percentile_ms(array("d", [0.002]), 0.999) == pytest.approx(2.0)


def test_connections_share_the_client_ids_in_turn() -> None:
    load = Load("produce", 100, 1, 4, 8, 0.0, 100, "bench", 2)
    requests = [load.frames(number) for number in range(3)]
    assert requests[0] == requests[2]
    assert [len(frames) for frames in requests] == [1, 1, 1]
    assert b"bench-0" in requests[0][0]
    assert b"bench-1" in requests[1][0]


def test_a_connection_may_use_several_client_ids() -> None:
    load = Load("produce", 100, 1, 4, 8, 0.0, 100, "bench", 6, rotate=3)
    names = [[name for name in range(6) if b"bench-%d" % name in frame] for frame in load.frames(1)]
    assert names == [[3], [4], [5]]
    assert len({len(frame) for frame in load.frames(1)}) == 1


@pytest.mark.parametrize("join", [False, True])
@pytest.mark.parametrize(
    ("kind", "size", "rate"), [("produce", 100, 0), ("produce", 100, 2000), ("fetch", 100_000, 0)]
)
def test_one_line_of_json_says_what_was_moved(
    tmp_path: Path, join: bool, kind: str, size: int, rate: float
) -> None:
    with fake_broker(tmp_path, join=join) as port:
        command = [sys.executable, "-m", "bench.load.drive", "--address", f"127.0.0.1:{port}"]
        command += ["--kind", kind, "--size", str(size), "--rate", str(rate), "--requests", "200"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["requests"] == 200
    assert 200 * size < result["bytes"] < 200 * (size + 200)
    assert 0 < result["p50_ms"] <= result["p99_ms"] <= result["p999_ms"]
    if rate:
        assert result["requests_per_s"] < rate * 1.02


def test_nobody_there_is_a_sentence() -> None:
    command = [sys.executable, "-m", "bench.load.drive", "--address", "127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("drive: 127.0.0.1:1: ")
    assert "Traceback" not in done.stderr
