"""The clients that are neither Python nor Java: what they take to be built, and how they are called.

All speak the same: to produce, they read lines "KEY VALUE"; what they consume, they write as lines
"PARTITION OFFSET KEY VALUE". To standard error they write a line for each throttle_time_ms that they notice.
What is fetched and built lies in build/interop, out of git's sight.
"""

import json
import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent
BUILD: Final = SOURCES.parents[1] / "build" / "interop"


class LeftOut(Exception):
    """The client cannot run here; str() says why."""


class Client(ABC):
    """One client library, ready to run."""

    name: str
    version: str
    """The library's, and what it runs on."""

    @abstractmethod
    def produce(self, bootstrap: str, client_id: str, topic: str) -> list[str]:
        """The command that sends standard input, a message a line."""

    @abstractmethod
    def consume(self, bootstrap: str, client_id: str, topic: str, group: str, count: int) -> list[str]:
        """The command that reads so many messages as the only member of a group, commits, and ends."""

    def waits(self, errors: str) -> list[int]:
        """Each throttle_time_ms that the client noticed, from what it wrote to standard error."""
        return [int(found) for found in re.findall(r"^throttled (\d+)$", errors, re.MULTILINE)]


class KafkaJs(Client):
    """KafkaJS, on Node.js."""

    name = "KafkaJS"

    def __init__(self) -> None:
        node, npm = _find("node"), _find("npm")
        folder = BUILD / "kafkajs"
        folder.mkdir(parents=True, exist_ok=True)
        for file in (SOURCES / "kafkajs").iterdir():
            shutil.copy(file, folder)
        _build([npm, "install", "--no-package-lock", "--no-audit", "--no-fund"], folder)
        package = json.loads((folder / "node_modules" / "kafkajs" / "package.json").read_text())
        self.version = f"{package['version']}, Node.js {_output(node, '--version')}"
        self._command = [node, str(folder / "client.js")]

    def produce(self, bootstrap: str, client_id: str, topic: str) -> list[str]:
        return [*self._command, "produce", bootstrap, client_id, topic]

    def consume(self, bootstrap: str, client_id: str, topic: str, group: str, count: int) -> list[str]:
        return [*self._command, "consume", bootstrap, client_id, topic, group, str(count)]


class FranzGo(Client):
    """franz-go, of which Go makes one program."""

    name = "franz-go"

    def __init__(self) -> None:
        go = _find("go")
        program = BUILD / "go" / "client"
        environment = {
            "GOMODCACHE": str(BUILD / "go" / "modules"),
            "GOCACHE": str(BUILD / "go" / "cache"),
            "GOFLAGS": "-modcacherw",
            "GOTOOLCHAIN": "local",
        }
        _build([go, "build", "-o", str(program)], SOURCES / "franz-go", environment)
        used = re.search(r"franz-go\s+v(\S+)", _output(go, "version", "-m", str(program)))
        self.version = f"{used[1] if used else '?'}, {_output(go, 'env', 'GOVERSION')}"
        self._command = [str(program)]

    def produce(self, bootstrap: str, client_id: str, topic: str) -> list[str]:
        return [*self._command, "produce", bootstrap, client_id, topic]

    def consume(self, bootstrap: str, client_id: str, topic: str, group: str, count: int) -> list[str]:
        return [*self._command, "consume", bootstrap, client_id, topic, group, str(count)]


class Kcat(Client):
    """kcat, on librdkafka."""

    name = "kcat"

    def __init__(self) -> None:
        program = shutil.which("kcat") or shutil.which("kafkacat")
        if program is None:
            raise LeftOut("kcat is not installed (Debian and Ubuntu: apt install kcat)")
        versions = re.search(r"Version (\S+) .*librdkafka (\S+)", _output(program, "-V"))
        self.version = f"{versions[1]}, librdkafka {versions[2]}" if versions else "?"
        self._command = [program, "-E", "-v"]

    def _for(self, bootstrap: str, client_id: str) -> list[str]:
        return [*self._command, "-b", bootstrap, "-X", f"client.id={client_id}"]

    def produce(self, bootstrap: str, client_id: str, topic: str) -> list[str]:
        idempotent = ("-X", "enable.idempotence=true")
        return [*self._for(bootstrap, client_id), *idempotent, "-P", "-t", topic, "-K", " "]

    def consume(self, bootstrap: str, client_id: str, topic: str, group: str, count: int) -> list[str]:
        form = ("-u", "-X", "auto.offset.reset=earliest", "-f", r"%p %o %k %s\n", "-c", str(count))
        return [*self._for(bootstrap, client_id), *form, "-G", group, topic]

    def waits(self, errors: str) -> list[int]:
        return [int(found) for found in re.findall(r"throttled request for (\d+)ms$", errors, re.MULTILINE)]


CLIENTS: Final[Sequence[type[Client]]] = (KafkaJs, FranzGo, Kcat)


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise LeftOut(f"there is no {program} on PATH")
    return found


def _build(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise LeftOut(f"`{' '.join(command[:2])}` fails with: {said[-1]}")


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (done.stdout or done.stderr).strip()
