"""Kafka's tools, and the programs in java/, in one JVM that stays: it starts longer than most of them run."""

import struct
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import IO, Any, Final

import pytest

from proxy.demo.children import Children, reap
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka import jars
from proxy.demo.kafka.tools import KafkaToolFailed, class_of
from tests.support.kafka.java_source import SECONDS, compiled, compiles, java_command

_COUNT: Final = struct.Struct(">i")
_LENGTH: Final = struct.Struct(">H")


class ToolServer:
    """A JVM with the tools of one version of Kafka, which starts when the first tool is run."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._children = Children()
        self._process: subprocess.Popen[str] | None = None
        self._busy = threading.Lock()

    def run(
        self, tool: str, arguments: Sequence[str], given: str, timeout: float
    ) -> subprocess.CompletedProcess[str] | None:
        """Run a tool to its end, or for `timeout` seconds; None if another one runs.

        Raises subprocess.TimeoutExpired after the timeout, with which the JVM ends.
        """
        if not self._busy.acquire(blocking=False):
            return None
        try:
            return self._run("", class_of(tool, self._version), arguments, given, timeout)
        finally:
            self._busy.release()

    def run_program(
        self, name: str, arguments: Sequence[str], given: str
    ) -> subprocess.CompletedProcess[str]:
        """Run java/NAME.java to its end."""
        folder = compiled(name, jars.ensure(self._version))
        with self._busy:
            return self._run(str(folder), name, arguments, given, SECONDS)

    def _run(
        self, folder: str, class_name: str, arguments: Sequence[str], given: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        command = [folder, class_name, *arguments]
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(_exchange, self._jvm(), command, given.encode())
            try:
                status, output, errors = running.result(timeout)
            except BaseException as error:
                self.close()
                if isinstance(error, TimeoutError):
                    raise subprocess.TimeoutExpired(command, timeout) from None
                raise
        return subprocess.CompletedProcess(command, status, output.decode(), errors.decode())

    def _jvm(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            command = java_command("ToolServer", jars.ensure(self._version))
            self._process = self._children.spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process

    def close(self) -> None:
        """End the JVM; the next tool starts another one."""
        if self._process is not None:
            reap(self._process)
            self._process = None


def _exchange(jvm: subprocess.Popen[str], command: Sequence[str], given: bytes) -> tuple[int, bytes, bytes]:
    # The pipes' own buffers are for text.
    to_jvm: Any = jvm.stdin
    from_jvm: Any = jvm.stdout
    strings = [text.encode() for text in command]
    to_jvm.buffer.write(
        _COUNT.pack(len(strings))
        + b"".join(_LENGTH.pack(len(text)) + text for text in strings)
        + _COUNT.pack(len(given))
        + given
    )
    to_jvm.buffer.flush()
    status = _int(from_jvm.buffer)
    return status, _bytes(from_jvm.buffer), _bytes(from_jvm.buffer)


def _int(stream: IO[bytes]) -> int:
    (value,) = _COUNT.unpack(_exactly(stream, _COUNT.size))
    return int(value)


def _bytes(stream: IO[bytes]) -> bytes:
    return _exactly(stream, _int(stream))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the JVM with Kafka's tools has ended")
    return data


@cache
def tool_server(version: str) -> ToolServer:
    """The server of this process for the tools of a version."""
    return ToolServer(version)


def run_java(name: str, *arguments: str, given: str = "") -> list[str]:
    """Return the lines that java/NAME.java prints. Skip the test if Java has no compiler.

    `given`: its standard input.
    """
    if not compiles():
        pytest.skip("this Java cannot compile: a JDK is needed")
    done = tool_server(jars.DEFAULT_VERSION).run_program(name, arguments, given)
    assert done.returncode == 0, f"{name} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


class ServedKafka(EmbeddedKafka):
    """A cluster whose tools run in the JVM of `tool_server`, or in their own while it is busy."""

    def run_tool(
        self, tool: str, *arguments: str, input: str | None = None, timeout: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        done = None
        if compiles():
            done = tool_server(self.version).run(tool, arguments, input or "", timeout)
        if done is None:
            return super().run_tool(tool, *arguments, input=input, timeout=timeout, check=check)
        if check and done.returncode != 0:
            command = " ".join([tool, *arguments])
            said = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
            raise KafkaToolFailed(f"{command} ended with status {done.returncode}:\n{said}")
        return done
