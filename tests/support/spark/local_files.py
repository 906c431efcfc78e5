"""Hadoop's local file system for Spark in tests, without a process for each file (LocalFiles.java)."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pyspark

from proxy.demo import java
from tests.support.kafka.java_source import compiled_source, compiles

_SOURCE: Final = Path(__file__).with_name("LocalFiles.java")
_JARS: Final = Path(pyspark.__file__).parent / "jars"


@cache
def settings() -> Mapping[str, str]:
    """The settings of a session; none if this Java has no compiler. Spark takes them at the start of Java."""
    if not compiles():
        return {}
    classes = compiled_source(_SOURCE, _JARS, java.find())
    return {
        "spark.driver.extraClassPath": str(classes),
        "spark.hadoop.fs.file.impl": _SOURCE.stem,
        "spark.hadoop.fs.AbstractFileSystem.file.impl": f"{_SOURCE.stem}$Context",
    }
