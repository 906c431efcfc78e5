"""Fetches jars of a list with checksums from Maven Central, several at a time, with jgo."""

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from proxy.errors import QuotaProxyError

if TYPE_CHECKING:
    from jgo.maven import MavenContext

AT_A_TIME: Final = 8
"""Jars that are fetched at the same time."""
ATTEMPTS: Final = 3
"""How often a jar is fetched until its checksum is right."""
_TIMEOUT_SECONDS: Final = 30
"""The timeout of a request to the repository."""


class FetchFailed(QuotaProxyError):
    """A jar could not be fetched; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of a list, by its Maven coordinates, with its checksum."""

    group: str
    artifact: str
    version: str
    sha256: str

    @classmethod
    def parse(cls, line: str) -> Self:
        """A line of a list: GROUP:ARTIFACT:VERSION SHA256."""
        coordinates, sha256 = line.split()
        group, artifact, version = coordinates.split(":")
        return cls(group, artifact, version, sha256)

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def fetch(
    jars: Sequence[Jar],
    into: Path,
    *,
    cache: Path,
    on_jar: Callable[[Jar], None] = lambda jar: None,
    repositories: dict[str, str] | None = None,
) -> None:
    """Fetch the jars into the folder `into`. Raises FetchFailed.

    Files stay in the folder `cache` until their checksum is right, so that an interrupted fetch resumes.
    `on_jar` is called in any thread, for each jar that is complete. `repositories`: URLs by name, in place of
    Maven Central.
    """
    try:
        from jgo.maven import MavenContext
    except ImportError:
        raise FetchFailed(
            "jgo is not installed: run make setup, or pip install '.[demo]', in a clone of the repository"
        ) from None

    def context() -> MavenContext:
        return MavenContext(
            repo_cache=cache, local_repos=[], remote_repos=repositories, timeout=_TIMEOUT_SECONDS
        )

    def fetch_one(jar: Jar) -> None:
        os.replace(_verified(context(), jar), into / jar.file_name)
        on_jar(jar)

    with ThreadPoolExecutor(AT_A_TIME) as threads:
        running = [threads.submit(fetch_one, jar) for jar in jars]
        try:
            for each in running:
                each.result()
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def _verified(context: "MavenContext", jar: Jar) -> Path:
    """Return the path of the fetched file, with the checksum of the list."""
    cause: object = None
    for _ in range(ATTEMPTS):
        artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
        try:
            path = Path(artifact.resolve())
        except (OSError, RuntimeError) as error:  # those of the network are OSErrors
            cause = error
            # An interrupted transfer leaves the part that arrived.
            if artifact.cached_path is not None:
                artifact.cached_path.unlink(missing_ok=True)
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256:
            return path
        cause = "its checksum differs from that of the list"
        path.unlink()
    raise FetchFailed(
        f"cannot fetch {jar.group}:{jar.artifact}:{jar.version} from Maven Central: {cause} "
        "(behind a web proxy, set HTTPS_PROXY)"
    )
