"""Interleaved rounds, on real processes."""

import shutil
from pathlib import Path

import pytest

from bench.peers.direct import Direct
from bench.peers.haproxy import HaProxy
from bench.peers.peer import Peer, Running, Setting
from bench.peers.quota_proxy import installed
from bench.peers.relay import Relay
from bench.rounds import DriveFailed, drive, fake_broker, run
from bench.scenarios import Scenario

SMALL = Scenario("small", "Small", "produce", 100, 400, tenants=10)


def test_every_peer_has_its_turn_in_every_round(tmp_path: Path) -> None:
    turns: list[str] = []
    with fake_broker(tmp_path, join=False) as port:
        samples, doubts = run(SMALL, [Direct(), Relay()], 2, Setting(port, 10, tmp_path), turns.append)
    assert [turn.rpartition(" ")[2] for turn in turns] == ["direct", "relay", "direct", "relay"]
    assert doubts == []
    assert [sample["requests"] for sample in samples["relay"]] == [400, 400]
    assert all(sample["cpu_s"] == 0 for sample in samples["direct"])
    assert all(sample["cpu_s"] > 0 and sample["peak_rss_mib"] > 5 for sample in samples["relay"])


def test_a_large_fetch_comes_through_the_relay_whole(tmp_path: Path) -> None:
    fetch = Scenario("fetch", "Fetch", "fetch", 3_000_000, 20, depth=2)
    with fake_broker(tmp_path, join=False) as port:
        samples, _ = run(fetch, [Relay()], 1, Setting(port, 0, tmp_path), print)
    assert samples["relay"][0]["bytes"] > 20 * 3_000_000


def test_a_peer_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(DriveFailed, match=r"small on nobody: drive: 127\.0\.0\.1:1: "):
        drive(SMALL, Running("nobody", 1), tmp_path)


@pytest.mark.skipif(shutil.which("haproxy") is None or shutil.which("openssl") is None, reason="not here")
@pytest.mark.parametrize(("kind", "size", "requests"), [("produce", 100, 4000), ("fetch", 300_000, 100)])
def test_over_tls(tmp_path: Path, kind: str, size: int, requests: int) -> None:
    """The proxy too, whose sides pause each other: nothing may stall."""
    scenario = Scenario("tls", "TLS", kind, size, requests, tls=True)
    peers: list[Peer] = [HaProxy(), installed()]
    with fake_broker(tmp_path, join=False) as port:
        samples, _ = run(scenario, peers, 1, Setting(port, 0, tmp_path, tls=True), print)
    assert [samples[peer.name][0]["requests"] for peer in peers] == [requests, requests]
