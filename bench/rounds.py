"""Runs a scenario on every peer in turn, round after round, so that other load affects all peers."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from bench.peers.peer import HOST, Peer, Running, Setting, free_ports, launch
from bench.peers.quota_proxy import TENANT
from bench.peers.tls import make_certificate
from bench.scenarios import Scenario

DRIVE_SECONDS: Final = 300.0
"""The timeout of a run of the driver."""
Sample = dict[str, Any]


class DriveFailed(Exception):
    """A peer failed under its load; the message has its name and the driver's output."""


@contextmanager
def fake_broker(folder: Path, *, join: bool) -> Iterator[int]:
    """Run a fake broker at a free port, which is the value; with `join`, it batches its writes."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "bench.load.broker", "--listen", f"{HOST}:{port}"]
    if join:
        command.append("--join")
    with launch(f"broker-{port}", command, Setting(port, 0, folder), port):
        yield port


def run(
    scenario: Scenario,
    peers: Sequence[Peer],
    rounds: int,
    setting: Setting,
    progress: Callable[[str], None],
) -> tuple[dict[str, list[Sample]], list[str]]:
    """Return every peer's samples, one per round, as the driver prints them, and the doubts about them.

    Raises StartFailed or DriveFailed.
    """
    samples: dict[str, list[Sample]] = {peer.name: [] for peer in peers}
    with ExitStack() as stack:
        started = [stack.enter_context(peer.start(setting)) for peer in peers]
        for number in range(rounds):
            for running in started:
                progress(f"{scenario.name}, round {number + 1} of {rounds}: {running.name}")
                samples[running.name].append(drive(scenario, running, setting.folder))
        doubts = [f"{scenario.name}: {doubt}" for running in started for doubt in running.doubts()]
    return samples, doubts


def drive(scenario: Scenario, running: Running, folder: Path) -> Sample:
    """Run the driver against one peer; return what it prints. Raises DriveFailed."""
    command = [sys.executable, "-m", "bench.load.drive", "--address", f"{HOST}:{running.port}"]
    options = {
        "kind": scenario.kind,
        "size": scenario.size,
        "partitions": scenario.partitions,
        "connections": scenario.connections,
        "depth": scenario.depth,
        "rate": scenario.rate,
        "requests": scenario.requests,
        "client-id": TENANT,
        "client-ids": scenario.tenants,
    }
    for option, value in options.items():
        command += [f"--{option}", str(value)]
    if scenario.tls:
        command += ["--tls-ca", str(make_certificate(folder).certificate)]
    if running.pid is not None:
        command += ["--pid", str(running.pid)]
    what = f"{scenario.name} on {running.name}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DRIVE_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise DriveFailed(f"{what}: not done after {DRIVE_SECONDS:.0f} s\n{running.last_words()}") from error
    if done.returncode != 0:
        raise DriveFailed(f"{what}: {done.stderr.strip()}\n{running.last_words()}")
    sample: Sample = json.loads(done.stdout)
    return sample
