"""Fetches jars from Maven Central with Apache Ivy, whose jar is part of PySpark, a dependency of the
pipeline."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from proxy.demo.children import Children, reap
from proxy.errors import QuotaProxyError

_ATTEMPTS: Final = 3  # Ivy gives up at the first network error, and keeps the files that it has fetched


class ResolveFailed(QuotaProxyError):
    """Jars could not be fetched; the message says why and what to do."""


def retrieve(what: str, request: Path, into: Path, *, cache: Path, launcher: Path) -> None:
    """Fetch the jars that `request` (an ivy.xml) names, and their dependencies, into the folder `into`.

    `what` is the name for the user, `launcher` the java to run. Ivy keeps its metadata and downloads in
    `cache`, and ignores the user's own Ivy settings. Prints a line on standard error. Raises ResolveFailed.
    """
    command = [
        str(launcher),
        f"-Divy.default.ivy.user.dir={cache}",
        *("-jar", str(_ivy_jar(what)), "-novalidate", "-cache", str(cache)),
        *("-ivy", str(request), "-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    log = cache.with_suffix(".log")
    with _Progress(f"{what}: fetching it from Maven Central into {cache.parent} (once)") as progress:
        for _ in range(_ATTEMPTS):
            if _run(command, log, progress) == 0:
                log.unlink()
                return
    raise ResolveFailed(
        f"cannot fetch {what} from Maven Central: {_reason(log)} (details are in {log}; "
        "behind a web proxy, set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT')"
    )


class _Progress:
    """A line on standard error; on a terminal, with the number of fetched jars."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._jars = 0

    def __enter__(self) -> Self:
        _say(self._text)
        return self

    def __exit__(self, *_: object) -> None:
        _say("\n")

    def jar(self) -> None:
        self._jars += 1
        if sys.stderr.isatty():
            _say(f"\r{self._text}: {self._jars} jars")


def _say(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


def _run(command: Sequence[str], log: Path, progress: _Progress) -> int:
    """Run Ivy with its output in the log, and return its exit status."""
    process = Children().spawn(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        with log.open("w") as file:
            for line in process.stdout:
                file.write(line)
                if "[SUCCESSFUL ]" in line:
                    progress.jar()
        return process.wait()
    finally:
        reap(process)


def _reason(log: Path) -> str:
    """Return the line of Ivy's log with the cause: a network error if there is one, else its consequence."""
    lines = [line.strip() for line in log.read_text().splitlines()]
    for sign in ("Server access error", "[FAILED", "module not found", "Exception"):
        for line in lines:
            if sign in line:
                return line
    return "Apache Ivy failed"


def _ivy_jar(what: str) -> Path:
    package = find_spec("pyspark")
    jars = sorted(Path(package.origin).parent.glob("jars/ivy-*.jar")) if package and package.origin else []
    if not jars:
        raise ResolveFailed(
            f"fetching {what} needs Apache Ivy, which is part of PySpark: "
            "run make setup, or install kafka-quota-proxy[pipeline]"
        )
    return jars[-1]
