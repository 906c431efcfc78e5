"""A stand-in for Java: what it is asked to run decides what it does."""

from pathlib import Path

import pytest

_SCRIPT = r"""#!/bin/sh
here=$(dirname "$0")
case " $* " in
*" -version "*)
    echo 'openjdk version "17.0.99"' >&2 ;;
*" -retrieve "*)
    echo fetched >> "$here/fetches"
    [ ! -e "$here/broken" ] || { cat "$here/broken"; exit 1; }
    while [ "$1" != -retrieve ]; do shift; done
    echo '	[SUCCESSFUL ] org.apache.kafka#kafka_2.13;4.3.1!kafka_2.13.jar (1ms)'
    touch "$(dirname "$2")/kafka.jar" ;;
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
        self._fetches = folder / "fetches"
        self._broken = folder / "broken"

    @property
    def fetches(self) -> int:
        """How often Ivy ran."""
        return len(self._fetches.read_text().splitlines()) if self._fetches.exists() else 0

    def break_network(self, says: str) -> None:
        """From now on Ivy fails and says this."""
        self._broken.write_text(says)

    def mend_network(self) -> None:
        self._broken.unlink()


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """Found as Java, with an empty cache and a PySpark whose Ivy nobody opens."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jars = tmp_path / "site" / "pyspark" / "jars"
    jars.mkdir(parents=True)
    (jars.parent / "__init__.py").touch()
    (jars / "ivy-2.5.3.jar").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return FakeJava(home / "bin")
