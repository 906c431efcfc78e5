"""Hadoop for Spark in tests: local files without a process for each (LocalFiles.java), and few settings.

Hadoop has some 1,100 default settings, most of them of services that no test uses. For each read and each
write, Spark sends all of them to its tasks, each compressed for itself: a quarter of the CPU time of a small
query.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from xml.etree import ElementTree
from zipfile import ZipFile

import pyspark

from proxy.demo.kafka import java
from tests.support.kafka.java_source import CLASSES, compiled_source, compiles

_SOURCE: Final = Path(__file__).with_name("LocalFiles.java")
_JARS: Final = Path(pyspark.__file__).parent / "jars"
_DEFAULTS: Final = ("core-default.xml", "mapred-default.xml", "yarn-default.xml")
_UNUSED: Final = re.compile(
    # File systems of clouds, and FTP.
    r"fs\.(s3a|azure|adl|ftp|wasbs?|abfss?|viewfs\.overload)\."
    # Servers, and the connections to them.
    r"|(ipc|ha|rpc|net|dfs|hadoop\.(http|rpc|ssl|zk|registry))\."
    r"|hadoop\.security\.(kms|crypto|group\.mapping\.(ldap|providers))\b"
    # Jobs that Hadoop runs itself; Spark uses its input and output formats.
    r"|mapreduce\.(?!input|output|fileoutputcommitter)|(mapred|map|yarn)\."
)
"""How the names of settings begin of what Spark does not use on one machine."""


@cache
def settings() -> Mapping[str, str]:
    """The settings of a session. Spark takes them at the start of Java."""
    folders = [_few_defaults()]
    found = {}
    if compiles():
        folders.append(compiled_source(_SOURCE, _JARS, java.find()))
        found = {
            "spark.hadoop.fs.file.impl": _SOURCE.stem,
            "spark.hadoop.fs.AbstractFileSystem.file.impl": f"{_SOURCE.stem}$Context",
        }
    return {"spark.driver.extraClassPath": os.pathsep.join(map(str, folders)), **found}


def _few_defaults() -> Path:
    """Return a folder with Hadoop's files of default settings without those that are not used."""
    (jar,) = _JARS.glob("hadoop-client-api-*.jar")
    fits = hashlib.sha256(f"{_DEFAULTS} {_UNUSED.pattern}".encode()).hexdigest()[:16]
    folder = CLASSES / f"{jar.stem}-{fits}"
    if not folder.exists():
        CLASSES.mkdir(parents=True, exist_ok=True)
        unfinished = Path(mkdtemp(dir=CLASSES))
        with ZipFile(jar) as files:
            for name in _DEFAULTS:
                (unfinished / name).write_bytes(_without_unused(files.read(name)))
        try:
            unfinished.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    return folder


def _without_unused(document: bytes) -> bytes:
    root = ElementTree.fromstring(document)
    for each in root.findall("property"):
        if _UNUSED.match((each.findtext("name") or "").strip()):
            root.remove(each)
        else:
            for description in each.findall("description"):
                each.remove(description)
    return bytes(ElementTree.tostring(root))
