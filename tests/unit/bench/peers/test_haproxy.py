"""HAProxy as a peer, and the word where it is missing."""

import shutil
from pathlib import Path

import pytest

from bench.peers import haproxy
from bench.peers.peer import Setting, Unavailable
from bench.rounds import fake_broker, run
from bench.scenarios import Scenario


def test_where_it_is_missing_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with pytest.raises(Unavailable, match="`apt-get install haproxy`"):
        haproxy.HaProxy()


@pytest.mark.skipif(
    shutil.which("haproxy", path="/usr/sbin:/usr/bin") is None, reason="haproxy is not installed"
)
def test_it_leads_to_the_broker(tmp_path: Path) -> None:
    load = Scenario("small", "Small", "produce", 100, 200)
    with fake_broker(tmp_path, join=False) as port:
        samples, _ = run(load, [haproxy.HaProxy()], 1, Setting(port, 0, tmp_path), print)
    assert samples["haproxy"][0]["requests"] == 200
    assert samples["haproxy"][0]["cpu_s"] > 0
