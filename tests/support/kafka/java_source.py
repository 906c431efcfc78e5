"""Java programs of one file, compiled by a JDK when they are run, with Kafka's jars."""

import os
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
    distribution = kafka_distribution.ensure()
    java = str(distribution.java.executable)
    if "jdk.compiler@" not in _modules(java):
        pytest.skip("this Java cannot compile: a JDK is needed")
    jars = os.pathsep.join(sorted(str(jar) for jar in distribution.folder.glob("*.jar")))
    command = [java, *JVM_FLAGS, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars]
    done = subprocess.run(
        [*command, str(FOLDER / f"{name}.java"), *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{name} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


@cache
def _modules(java: str) -> str:
    return subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
