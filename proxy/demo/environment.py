"""Prepares `make demo`: `python -m proxy.demo.environment VENV`

Installs the project, interpreted, and its run-time dependencies into a virtual environment, and fetches
Apache Kafka at the same time. Uses the standard library only: it runs before anything is installed.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Final

from proxy.demo.kafka import java
from proxy.demo.kafka.jars import DEFAULT_VERSION, LISTS
from proxy.errors import QuotaProxyError

LOCKED: Final = Path("requirements/demo.txt")
FETCHER: Final = Path("requirements/fetch.txt")
"""The part of LOCKED that fetches Kafka."""
_SHOWN_EVERY_SECONDS: Final = 1.0
"""Between two lines about the steps that run."""
_POLL_SECONDS: Final = 0.02
"""Between two looks at the steps that run."""


class SetUpFailed(QuotaProxyError):
    """A step failed; the message has the end of its output."""


class Step:
    """A command whose output lines are counted, and shown if it fails."""

    def __init__(self, name: str, command: Sequence[str], counted: str = "\0", total: int = 0) -> None:
        """`counted`: how the lines begin that are counted, up to `total`."""
        self._name = name
        self._counted = counted
        self._total = total
        self._count = 0
        self._lines: list[str] = []
        self._process = subprocess.Popen(  # noqa: S603 (commands of this file)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self._lines.append(line)
                self._count += line.startswith(self._counted)

    @property
    def running(self) -> bool:
        return self._reader.is_alive()

    def __str__(self) -> str:
        return f"{self._name} {min(self._count, self._total)} of {self._total}" if self._total else self._name

    def end(self) -> None:
        """Wait for the end. Raises SetUpFailed."""
        self._reader.join()
        if self._process.wait() != 0:
            raise SetUpFailed(f"{self._name} failed:\n" + "".join(self._lines[-20:]).rstrip())
        self._count = self._total

    def stop(self) -> None:
        """Kill the command if it runs."""
        self._process.kill()
        self._process.wait()
        self._reader.join()


class Display:
    """Shows the time since the start, and what is being done."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._last = ""

    def show(self, text: str) -> None:
        if text != self._last:
            self._last = text
            print(f"[{time.monotonic() - self._started:4.0f} s] {text}", flush=True)

    def follow(self, *steps: Step) -> None:
        """Show the steps until all have ended. Raises SetUpFailed."""
        waiting, shown_at = list(steps), float("-inf")
        try:
            while waiting:
                if time.monotonic() >= shown_at + _SHOWN_EVERY_SECONDS:
                    self.show(", ".join(map(str, steps)))
                    shown_at = time.monotonic()
                for step in [step for step in waiting if not step.running]:
                    step.end()  # a failure does not wait for the other steps
                    waiting.remove(step)
                time.sleep(_POLL_SECONDS)
        finally:
            for step in steps:
                step.stop()


def prepare(venv: Path) -> None:
    """Prepare the environment; raises JavaMissing and SetUpFailed."""
    java.find()
    python = str(venv / "bin" / "python")
    display = Display()
    if not (venv / "bin" / "pip").exists():
        display.follow(
            Step(f"a Python environment in {venv}", [sys.executable, "-m", "venv", "--clear", str(venv)])
        )
    pip = [
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-compile",
        "--progress-bar=off",
    ]
    display.follow(Step("the client that fetches Kafka", [*pip, "--require-hashes", "-r", str(FETCHER)]))
    display.follow(
        Step("packages", [*pip, "--require-hashes", "-r", str(LOCKED)], "Collecting", _missing()),
        Step("Kafka's jars", [python, "-m", "proxy.demo.prepare", "--jars"], "fetched", _jars()),
    )
    display.follow(Step("the project", [*pip, "--no-deps", "--no-build-isolation", "--editable", "."]))


def _missing() -> int:
    """How many packages of LOCKED are not installed yet."""
    return LOCKED.read_text().count("==") - FETCHER.read_text().count("==")


def _jars() -> int:
    return len((LISTS / f"kafka-{DEFAULT_VERSION}.txt").read_text().splitlines())


if __name__ == "__main__":
    try:
        prepare(Path(sys.argv[1]))
    except QuotaProxyError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
