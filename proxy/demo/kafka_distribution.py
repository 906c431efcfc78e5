"""Apache Kafka's jars, fetched once: `python -m proxy.demo.kafka_distribution [VERSION ...]`

They go into a cache outside the tree, `$XDG_CACHE_HOME/kafka-quota-proxy` (`~/.cache/...` by default):

    kafka-4.3.1/    one version: its jars, and ivy.xml, the request that they answer
    ivy/            Apache Ivy's own cache while it works: an interrupted fetch goes on where it stopped
    unfinished/     what is on its way to one of the folders above
    lock            held while anything here changes

A version's folder is renamed into place when it is whole: what is there can be used without a further look.
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
from proxy.errors import QuotaProxyError

DEFAULT_VERSION: Final = "4.3.1"

# kafka-tools without its dependencies: all but Kafka Connect's web server comes with the broker anyway.
# slf4j-simple: Kafka's logging back ends want a file of settings, this one writes to standard error without.
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
        """Where `class_archive` puts what it makes; good for this very Java only."""
        return self.folder / f"classes-{self.java.version}.jsa"

    def command(self, class_name: str, *arguments: str, jvm_flags: Sequence[str] = ()) -> list[str]:
        """The command line that runs a class of this version."""
        jars = sorted(str(jar) for jar in self.folder.glob("*.jar"))
        archive = [f"-XX:SharedArchiveFile={self.class_archive}"] if self.class_archive.exists() else []
        java = str(self.java.executable)
        return [java, *archive, *jvm_flags, "-cp", os.pathsep.join(jars), class_name, *arguments]


def cache_folder() -> Path:
    """Where everything fetched is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafka-quota-proxy"


def ensure(version: str = DEFAULT_VERSION) -> KafkaDistribution:
    """This version of Apache Kafka, fetched with a line on standard error if the cache lacks it.

    Safe to call from several processes at once. Raises JavaMissing and `ivy.ResolveFailed`.
    """
    distribution = KafkaDistribution(version, cache_folder() / f"kafka-{version}", java.find())
    if not _is_whole(distribution):
        with lock():
            if not _is_whole(distribution):
                _fetch(distribution)
    return distribution


def _is_whole(distribution: KafkaDistribution) -> bool:
    """Whether the cache answers the request as it is written today."""
    try:
        answered = (distribution.folder / "ivy.xml").read_text()
    except FileNotFoundError:
        return False
    return answered == _REQUEST.format(version=distribution.version)


@contextmanager
def lock() -> Iterator[None]:
    """Keeps other processes from changing the cache."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another process that sets up Apache Kafka", file=sys.stderr)
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


def main(versions: Sequence[str]) -> None:
    """Fetches the versions named, or the one that the demo runs, and prepares each for a quick start."""
    for version in versions or [DEFAULT_VERSION]:
        distribution = ensure(version)
        if not distribution.class_archive.exists():
            from proxy.demo import class_archive  # runs a Kafka, which takes this module

            class_archive.make(distribution)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except QuotaProxyError as error:
        sys.exit(str(error))
