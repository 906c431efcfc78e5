"""Finds a Java that can run Apache Kafka. Uses the standard library only: it runs before anything is
installed."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proxy.errors import QuotaProxyError

MINIMUM: Final = 17
"""The oldest Java that Apache Kafka 4's broker starts on (KIP-1013)."""

_VERSION: Final = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')
_ADVICE: Final = (
    "install one (Debian and Ubuntu: apt install openjdk-17-jre-headless; "
    "Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@21) or point JAVA_HOME at it"
)


class JavaMissing(QuotaProxyError):
    """No usable Java on this machine; `found` says what was found instead."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"Apache Kafka needs Java {MINIMUM} or newer, but {self.found}: {_ADVICE}"


@dataclass(frozen=True, slots=True)
class Java:
    """The launcher of a Java that is new enough."""

    executable: Path
    version: str
    """In Java's own format, such as 17.0.15."""


def find() -> Java:
    """Return the Java in JAVA_HOME, or the first one on PATH. Raises JavaMissing."""
    home = os.environ.get("JAVA_HOME")
    in_home = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    executable = in_home or shutil.which("java")
    if executable is None:
        raise JavaMissing("no java was found in JAVA_HOME or on PATH")
    result = subprocess.run(  # noqa: S603 (the user's own java)
        [executable, "-version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    version = _VERSION.search(result.stderr)
    if result.returncode != 0 or version is None:
        said = (result.stderr or result.stdout).strip().splitlines() or ["nothing"]
        raise JavaMissing(f"{executable} does not run: {said[0]}")
    if int(version[2]) < MINIMUM:
        raise JavaMissing(f"{executable} is Java {version[1]}")
    return Java(Path(executable), version[1])


if __name__ == "__main__":
    try:
        find()
    except JavaMissing as missing:
        sys.exit(str(missing))
