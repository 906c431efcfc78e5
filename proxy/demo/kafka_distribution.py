"""Apache Kafka's jars, fetched once per version into a cache.

The cache is outside the source tree, in `$XDG_CACHE_HOME/kafka-quota-proxy` (`~/.cache/...` by default):

    kafka-4.3.1/    one version: its jars, and ivy.xml, the request that resolved to them
    ivy/            Apache Ivy's own cache while it runs, so that an interrupted fetch resumes
    unfinished/     a version that is being fetched
    lock            a file that is locked while the cache changes

A version's folder is renamed into place when it is complete, so a folder that exists can be used unchecked.
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proxy.demo import ivy, java

DEFAULT_VERSION: Final = "4.3.1"

# kafka-tools without its dependencies: except for Kafka Connect's web server, the broker has them all.
# slf4j-simple writes to standard error without a configuration file, which Kafka's logging back ends need.
_REQUEST: Final = """\
<ivy-module version="2.0">
  <info organisation="kafka-quota-proxy" module="kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconf="default->default">
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{version}"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{version}" transitive="false"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36"/>
    <exclude org="org.slf4j" module="slf4j-reload4j"/>
  </dependencies>
</ivy-module>
"""


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

    def command(self, class_name: str, *arguments: str, jvm_flags: Sequence[str] = ()) -> list[str]:
        """The command line that runs a class of this version."""
        jars = sorted(str(jar) for jar in self.folder.glob("*.jar"))
        archive = [f"-XX:SharedArchiveFile={self.class_archive}"] if self.class_archive.exists() else []
        java = str(self.java.executable)
        return [java, *archive, *jvm_flags, "-cp", os.pathsep.join(jars), class_name, *arguments]


def cache_folder() -> Path:
    """The folder of everything that is fetched."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafka-quota-proxy"


def ensure(version: str = DEFAULT_VERSION) -> KafkaDistribution:
    """Return this version of Apache Kafka; fetch it, with a line on standard error, if the cache lacks it.

    Several processes may call this at once. Raises JavaMissing and `ivy.ResolveFailed`.
    """
    distribution = KafkaDistribution(version, cache_folder() / f"kafka-{version}", java.find())
    if not _is_whole(distribution):
        with lock():
            if not _is_whole(distribution):
                _fetch(distribution)
    return distribution


def _is_whole(distribution: KafkaDistribution) -> bool:
    """Whether the cached version was resolved from today's request."""
    try:
        request = (distribution.folder / "ivy.xml").read_text()
    except FileNotFoundError:
        return False
    return request == _REQUEST.format(version=distribution.version)


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


def _fetch(distribution: KafkaDistribution) -> None:
    ivy_cache = cache_folder() / "ivy"
    unfinished = cache_folder() / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    request = unfinished / "ivy.xml"
    request.write_text(_REQUEST.format(version=distribution.version))
    what = f"Apache Kafka {distribution.version}"
    ivy.retrieve(what, request, unfinished, cache=ivy_cache, launcher=distribution.java.executable)
    shutil.rmtree(distribution.folder, ignore_errors=True)
    unfinished.rename(distribution.folder)
    shutil.rmtree(ivy_cache, ignore_errors=True)
