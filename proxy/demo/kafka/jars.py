"""Apache Kafka's jars, fetched once per version into a cache.

`jars/kafka-VERSION.txt` lists the jars of each version that can be fetched, with their checksums: the
broker's, and kafka-tools, which needs no others except for Kafka Connect's web server. slf4j-simple writes to
standard error without a configuration file, which Kafka's logging back ends need.

The cache is outside the source tree, in `$XDG_CACHE_HOME/kafka-quota-proxy` (`~/.cache/...` by default):

    kafka-4.3.1-0a1b2c3d/    the jars of one version, and the beginning of the SHA-256 of their list
    maven/                   jars that are being fetched, so that an interrupted fetch resumes
    unfinished/              a version that is being fetched
    lock                     a file that is locked while the cache changes

A version's folder is renamed into place when it is complete, so a folder that exists can be used unchecked.
"""

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proxy.demo.kafka import java, maven
from proxy.demo.kafka.maven import FetchFailed, Jar

DEFAULT_VERSION: Final = "4.3.1"
LISTS: Final = Path(__file__).parents[1] / "jars"


@dataclass(frozen=True, slots=True)
class KafkaDistribution:
    """One version of Apache Kafka, ready to run."""

    version: str
    folder: Path
    java: java.Java

    @property
    def class_archive(self) -> Path:
        """The JVM's class data archive (see `class_archive`), which fits this version of Java only."""
        return self.folder / f"classes-{self.java.version}.jsa"

    def command(
        self, class_name: str, *arguments: str, jvm_flags: Sequence[str] = (), classes: Path | None = None
    ) -> list[str]:
        """The command line that runs a class of this version, or of the folder `classes`."""
        # The archive fits only if the path begins with these jars.
        path = [*sorted(self.folder.glob("*.jar")), *([classes] if classes is not None else [])]
        archive = [f"-XX:SharedArchiveFile={self.class_archive}"] if self.class_archive.exists() else []
        java = str(self.java.executable)
        return [java, *archive, *jvm_flags, "-cp", os.pathsep.join(map(str, path)), class_name, *arguments]


def cache_folder() -> Path:
    """The folder of everything that is fetched."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafka-quota-proxy"


def ensure(version: str = DEFAULT_VERSION, on_jar: Callable[[Jar], None] | None = None) -> KafkaDistribution:
    """Return this version of Apache Kafka; fetch it if the cache lacks it.

    `on_jar` is called for each fetched jar, in any thread; the default shows them on standard error. Several
    processes may call this at once. Raises JavaMissing and FetchFailed.
    """
    path = LISTS / f"kafka-{version}.txt"
    if not path.exists():
        known = ", ".join(sorted(each.stem.removeprefix("kafka-") for each in LISTS.glob("*.txt")))
        raise FetchFailed(
            f"there is no list of the jars of Apache Kafka {version}; there are those of {known}"
        )
    text = path.read_text()
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    distribution = KafkaDistribution(version, cache_folder() / f"kafka-{version}-{digest}", java.find())
    if not distribution.folder.exists():
        with lock():
            if not distribution.folder.exists():
                jars = [Jar.parse(line) for line in text.splitlines()]
                _fetch(distribution, jars, on_jar or _Progress(version, len(jars)).on_jar)
    return distribution


@contextmanager
def lock() -> Iterator[None]:
    """Keep other processes from changing the cache."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another process that is setting up Apache Kafka", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(distribution: KafkaDistribution, jars: Sequence[Jar], on_jar: Callable[[Jar], None]) -> None:
    cache = cache_folder() / "maven"
    unfinished = cache_folder() / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    maven.fetch(jars, unfinished, cache=cache, on_jar=on_jar)
    unfinished.rename(distribution.folder)
    shutil.rmtree(cache, ignore_errors=True)


class _Progress:
    """A line on standard error; on a terminal, with the number of fetched jars."""

    def __init__(self, version: str, count: int) -> None:
        self._line = f"Apache Kafka {version}: fetching {count} jars from Maven Central into {cache_folder()}"
        self._terminal = sys.stderr.isatty()
        self._left = count
        print(self._line, end="" if self._terminal else "\n", file=sys.stderr, flush=True)

    def on_jar(self, jar: Jar) -> None:
        self._left -= 1
        if self._terminal:
            text = f"\r{self._line}: {self._left} left " + ("" if self._left else "\n")
            print(text, end="", file=sys.stderr, flush=True)
