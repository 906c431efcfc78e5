"""Faults that a neighbour has nothing to do with: what each does, and when one costs too much."""

import errno
import multiprocessing
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.soak import neighbour
from bench.soak.neighbour import FAULTS, Measured, Scene, limited, measure, nested, repeating, until_calm
from proxy.bounded_yaml import OutOfBounds, compose

CALM = [[0.001] * 100, [0.001] * 100]


def count(file: Path) -> None:
    with file.open("a") as to:
        to.write("x")


def scene(tmp_path: Path, calls: list[object]) -> Scene:
    """A scene whose processes are this one."""
    file = tmp_path / "quota-proxy.yaml"
    file.write_bytes(b"{}")
    process = SimpleNamespace(pid=os.getpid(), wait=lambda seconds: calls.append("wait"))
    proxy = SimpleNamespace(
        process=process,
        config_file=file,
        broker_port=lambda node_id: 9000 + node_id,
    )
    kafka = SimpleNamespace(
        pid=lambda node_id: os.getpid(),
        port=lambda node_id: 8000 + node_id,
        kill=lambda node_id: calls.append(("kill", node_id)),
        start=lambda node_id: calls.append(("start", node_id)),
    )
    return Scene(cast("Any", kafka), cast("Any", proxy), 7000, cast("Any", None), 1.0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What a fault does to processes."""
    made: list[object] = []

    def repeated(action: Any, *arguments: object, every: float) -> Any:
        made.append((action.__name__, arguments[0]))
        return nullcontext()

    monkeypatch.setattr(neighbour, "repeating", repeated)
    monkeypatch.setattr(neighbour, "until_calm", lambda pid: made.append("calm"))
    monkeypatch.setattr(os, "kill", lambda pid, number: made.append(number))
    return made


@pytest.mark.parametrize(
    ("at_proxy", "at_broker", "too_much"),
    [(0.0014, 0.001, False), (0.0016, 0.001, True), (0.0016, 0.0012, False), (0.0016, 0.0005, True)],
)
def test_a_fault_costs_too_much_if_the_broker_does_not_explain_it(
    at_proxy: float, at_broker: float, too_much: bool
) -> None:
    found = Measured(CALM, [[at_proxy] * 100, [at_broker] * 100])
    assert found.costs_too_much == too_much
    figures = cast("Any", found.figures())
    assert figures["proxy"]["ratio"] == round(at_proxy / 0.001, 2)
    assert (figures["broker"]["calm_p99"], figures["broker"]["requests"]) == (1.0, 100)


def test_calm_phases_alternate_with_the_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    during: list[bool] = []

    @contextmanager
    def fault(scene: Scene) -> Iterator[None]:
        during.append(True)
        yield
        during.append(False)

    def measured(tenants: object, seconds: float) -> list[list[float]]:
        return [[float(bool(during and during[-1]))], [2.0]]

    monkeypatch.setattr(neighbour, "Neighbour", lambda port, topic: nullcontext())
    monkeypatch.setattr(neighbour, "measure_all", measured)
    found = measure(fault, scene(tmp_path, []), 2)
    assert (found.calm, found.faulty) == ([[0.0] * 2, [2.0] * 2], [[1.0] * 2, [2.0] * 2])


def test_an_action_is_repeated_while_the_block_runs(tmp_path: Path) -> None:
    file = tmp_path / "calls"
    file.touch()
    with repeating(count, file, every=0.0):
        while file.stat().st_size < 3:
            time.sleep(0.01)
    assert multiprocessing.active_children() == []


def test_a_limit_of_another_process_is_lowered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour, "CALM_SECONDS", 0.1)
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            before = resource.prlimit(other.pid, resource.RLIMIT_FSIZE)
            with limited(other.pid, resource.RLIMIT_FSIZE, 7):
                assert resource.prlimit(other.pid, resource.RLIMIT_FSIZE)[0] == 7
            assert resource.prlimit(other.pid, resource.RLIMIT_FSIZE) == before
            until_calm(other.pid)
        finally:
            other.kill()


def test_a_nested_file_is_no_valid_one(tmp_path: Path) -> None:
    file = tmp_path / "quota-proxy.yaml"
    nested(str(file), b'{"cluster": "tests"}')
    with pytest.raises(OutOfBounds):
        compose(file.read_text())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("no_fault", []),
        ("unreadable_records", [("unreadable", "127.0.0.1:8001")]),
        ("broker_closes_tls", [("visit", 7000)]),
        ("no_descriptors", [("crowd", 9001)]),
        ("broker_hangs", [signal.SIGSTOP, ("leave", 9002), signal.SIGCONT, "calm"]),
        ("broker_is_gone", [("kill", 2), ("visit", 9002), ("start", 2), "calm"]),
    ],
)
def test_what_a_fault_does(name: str, expected: list[object], calls: list[object], tmp_path: Path) -> None:
    [fault] = [each for each in FAULTS if each.__name__ == name]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with fault(scene(tmp_path, calls)):
        pass
    assert calls == expected
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_the_file_is_as_before_in_the_end(calls: list[object], tmp_path: Path) -> None:
    of = scene(tmp_path, calls)
    with neighbour.nested_file(of):
        of.proxy.config_file.write_bytes(b"[")
    assert of.proxy.config_file.read_bytes() == b"{}"


def test_no_file_grows_on_a_full_disk(tmp_path: Path) -> None:
    file = tmp_path / "written"
    with neighbour.full_disk(scene(tmp_path, [])), pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        file.write_bytes(b"x")
    file.write_bytes(b"x")
