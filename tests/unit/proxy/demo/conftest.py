"""A stand-in for Java: what it is asked to run decides what it does."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from proxy.demo.kafka import maven
from proxy.demo.kafka.maven import FetchFailed, Jar

_SCRIPT = r"""#!/bin/sh
here=$(dirname "$0")
case " $* " in
*" -version "*)
    echo 'openjdk version "17.0.99"' >&2 ;;
*" kafka.tools.StorageTool "*)
    while [ "$1" != -c ]; do shift; done
    data=$(sed -n 's/^log.dirs=//p' "$2")
    mkdir "$data" && touch "$data/meta.properties" ;;
*" kafka.Kafka "*)
    echo 'INFO starting'; echo '[main] ERROR the reason'; echo 'INFO stopped'; exit 3 ;;
*" org.apache.kafka.tools.ProducerPerformance "*)
    cat; echo "tools say why" >&2; exit 5 ;;
*" a.Sleeper "*)
    exec sleep 600 ;;
*)
    exec cat ;;
esac
"""


class FakeJava:
    """The stand-in's folder, which it writes to."""

    def __init__(self, folder: Path) -> None:
        self.executable = folder / "java"
        self.executable.write_text(_SCRIPT)
        self.executable.chmod(0o755)
        self.fetches = 0
        """How often jars were fetched."""
        self._broken = ""

    def break_network(self, says: str) -> None:
        """From now on, a fetch fails and says this."""
        self._broken = says

    def mend_network(self) -> None:
        self._broken = ""

    def fetch(
        self,
        jars: Sequence[Jar],
        into: Path,
        *,
        cache: Path,
        on_jar: Callable[[Jar], None] = lambda jar: None,
    ) -> None:
        """Fetches the first jar of a list, as an empty file named kafka.jar."""
        self.fetches += 1
        cache.mkdir(exist_ok=True)
        if self._broken:
            raise FetchFailed(self._broken)
        (into / "kafka.jar").touch()
        on_jar(jars[0])


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """Found as Java, with an empty cache and a stand-in for Maven Central."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fake = FakeJava(home / "bin")
    monkeypatch.setattr(maven, "fetch", fake.fetch)
    return fake
