"""Java programs of one file, compiled once by a JDK, with the jars of Kafka or of another library."""

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from proxy.demo.kafka import java
from proxy.demo.kafka.jars import KafkaDistribution
from proxy.demo.kafka.tools import JVM_FLAGS

SECONDS: Final = 120.0
_FOLDER: Final = Path(__file__).with_name("java")
CLASSES: Final = Path(__file__).parents[3] / "build" / "java"
"""Compiled programs, each in a folder of its own: to compile takes longer than to run."""
_FLAGS: Final = (*JVM_FLAGS, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


def java_command(name: str, distribution: KafkaDistribution, *arguments: str) -> list[str]:
    """The command line that runs a program with the jars of this version of Kafka."""
    classes = compiled(name, distribution)
    return distribution.command(name, *arguments, jvm_flags=_FLAGS, classes=classes)


def compiled(name: str, distribution: KafkaDistribution) -> Path:
    """Compile a program unless this has been done, and return the folder of its classes."""
    return compiled_source(_FOLDER / f"{name}.java", distribution.folder, distribution.java)


def compiled_source(source: Path, jars: Path, jvm: java.Java) -> Path:
    """Compile a source with the jars of a folder unless this has been done, and return the folder of its
    classes.
    """
    fits = source.read_bytes() + f"{jars.name} {jvm.version}".encode()
    classes = CLASSES / f"{source.stem}-{hashlib.sha256(fits).hexdigest()[:16]}"
    if not classes.exists():
        CLASSES.mkdir(parents=True, exist_ok=True)
        unfinished = Path(mkdtemp(dir=CLASSES))
        compiler = ("-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none", "-d", str(unfinished))
        path = os.pathsep.join(map(str, jars.glob("*.jar")))
        command = [str(jvm.executable), *JVM_FLAGS, *compiler, "-cp", path, str(source)]
        subprocess.run(command, check=True, timeout=SECONDS)
        try:
            unfinished.rename(classes)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    return classes


@cache
def compiles() -> bool:
    """Whether this Java has a compiler."""
    command = [str(java.find().executable), "--list-modules"]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "jdk.compiler@" in modules
