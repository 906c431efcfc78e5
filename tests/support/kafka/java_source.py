"""Java programs of one file, compiled by a JDK when they are run, with Kafka's jars."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from proxy.demo import kafka_distribution
from proxy.demo.kafka_tools import JVM_FLAGS

FOLDER: Final = Path(__file__).with_name("java")
SECONDS: Final = 120.0


def run_java(name: str, *arguments: str, given: str | None = None) -> list[str]:
    """Return the lines that tests/support/kafka/java/NAME.java prints. Skip the test if Java has no compiler.

    `given`: its standard input.
    """
    if not compiles():
        pytest.skip("this Java cannot compile: a JDK is needed")
    flags = (*JVM_FLAGS, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
    command = kafka_distribution.ensure().command(str(FOLDER / f"{name}.java"), *arguments, jvm_flags=flags)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{name} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


@cache
def compiles() -> bool:
    """Whether this Java has a compiler."""
    java = str(kafka_distribution.ensure().java.executable)
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    return "jdk.compiler@" in modules
