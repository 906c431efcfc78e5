"""No proxy: clients meet the fake broker itself."""

from pathlib import Path

from bench.peers.direct import Direct
from bench.peers.peer import Setting


def test_nothing_is_started(tmp_path: Path) -> None:
    with Direct().start(Setting(1234, 0, tmp_path)) as running:
        assert (running.name, running.port) == ("direct", 1234)
        assert (running.pid, running.doubts()) == (None, [])
    assert list(tmp_path.iterdir()) == []
