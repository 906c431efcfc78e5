"""Files on any file system that Hadoop knows: local paths, file://, hdfs://, s3a:// and others."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from pyspark.sql import SparkSession

from pipeline.errors import PipelineError

HIDDEN: Final = ("_", ".")
"""Spark does not read files and folders whose names begin with one of these."""
_PATTERN: Final = re.compile(r"[][*?{}\\]")
"""The characters with a meaning in Hadoop's patterns of paths."""


def literal(path: str) -> str:
    """Return a pattern that matches only this path: Spark takes each path as a pattern."""
    return _PATTERN.sub(r"\\\g<0>", path)


@lru_cache(maxsize=1)
def _path_class(jvm: Any) -> Any:
    """Return Hadoop's Path: Java looks for a class `org`, then `org.apache` and so on, in each jar first."""
    return jvm.org.apache.hadoop.fs.Path


class FilePath:
    """A file or folder, named by a path or a URL."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        context: Any = spark.sparkContext
        self._spark: Final = spark
        self._text: Final = text.rstrip("/")
        self._jvm: Final = context._jvm
        self._path: Final = _path_class(self._jvm)(text)
        self._files: Final = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return bool(self._files.exists(self._path))

    def is_ignored(self) -> bool:
        """Whether this is a file that Spark does not read because of its name."""
        return self._path.getName().startswith(HIDDEN) and bool(
            self._files.getFileStatus(self._path).isFile()
        )

    def is_local(self) -> bool:
        """Whether the path is one of this machine's."""
        return str(self._files.getUri().getScheme()) == "file"

    def has_files(self, suffix: str = "") -> bool:
        """Whether the folder, or a folder in it, has a file that Spark reads and whose name has this
        ending.
        """
        return next(self._names(suffix), None) is not None

    def is_same(self, other: "FilePath") -> bool:
        """Whether both name the same file or folder."""
        mine, its = (each._files.makeQualified(each._path) for each in (self, other))
        return bool(mine.equals(its))

    def delete(self) -> None:
        """Delete the file, or the folder with what is in it; do nothing if there is none."""
        self._files.delete(self._path, True)

    def names(self) -> list[str]:
        """Return the names of the files and folders in this folder; none if there is no folder."""
        if not self.exists():
            return []
        return [found.getPath().getName() for found in self._files.listStatus(self._path)]

    def sizes(self, suffix: str) -> dict[str, int]:
        """Return the sizes in bytes of the files in this folder that Spark reads and whose names have this
        ending.
        """
        if not self.exists():
            return {}
        found = [each for each in self._files.listStatus(self._path) if each.isFile()]
        sizes = {each.getPath().getName(): int(each.getLen()) for each in found}
        return {
            name: size
            for name, size in sizes.items()
            if name.endswith(suffix) and not name.startswith(HIDDEN)
        }

    def files(self) -> list[str]:
        """Return the paths, from this folder, of the files in it and in its folders that Spark reads."""
        return [name.removeprefix("/") for name in self._names()]

    def child(self, name: str) -> "FilePath":
        """Return a file or folder in this folder."""
        return FilePath(self._spark, f"{self._text}/{name}")

    def beside(self, suffix: str) -> "FilePath":
        """Return a path in the same folder, with the name `.NAME.SUFFIX`, which Spark does not read."""
        folder, slash, name = self._text.rpartition("/")
        return FilePath(self._spark, f"{folder}{slash}.{name}.{suffix}")

    def move_to(self, other: "FilePath") -> None:
        """Rename the file or folder to a path at which nothing is. Raises PipelineError if that fails."""
        if not self._files.rename(self._path, other._path):
            raise PipelineError(f"{self} cannot be renamed to {other}")

    def replace(self, other: "FilePath") -> None:
        """Take the place of another file or folder, which is deleted.

        No file system replaces a folder in one step. If this process is killed between the steps, `other` is
        missing, and repair() brings it back. See Swap for folders whose rename is no single step either.
        """
        before = other.beside("old")
        before.delete()
        if other.exists():
            other.move_to(before)
        self.move_to(other)
        before.delete()

    def remove(self) -> None:
        """Delete the file or folder, so that repair() brings back all of it, or nothing is left to read."""
        before = self.beside("old")
        before.delete()
        self.move_to(before)
        before.delete()

    def repair(self) -> None:
        """Bring back the file or folder that a killed process was about to replace, or delete its remains."""
        before = self.beside("old")
        if before.exists():
            if self.exists():
                before.delete()
            else:
                before.move_to(self)

    def only_file(self, suffix: str) -> "FilePath":
        """Return the only file of the folder whose name has this ending."""
        return FilePath(self._spark, self._text + next(self._names(suffix)))

    def __str__(self) -> str:
        return self._text

    def read_text(self) -> str:
        """Return the file's content."""
        stream = self._files.open(self._path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, text: str) -> None:
        """Write the file, replacing an existing one once the new one is whole."""
        aside = self.beside("new")
        aside.create(text)
        aside.replace(self)

    def create(self, text: str) -> None:
        """Write a file of which nobody reads a part, and its folder."""
        self._files.setWriteChecksum(False)
        try:
            stream = self._files.create(self._path, True)
            try:
                stream.write(text.encode())
            finally:
                stream.close()
        finally:
            self._files.setWriteChecksum(True)

    def _names(self, suffix: str = "") -> Iterator[str]:
        if not self.exists():
            return
        root = self._files.makeQualified(self._path).toString()
        files = self._files.listFiles(self._path, True)
        while files.hasNext():
            name = files.next().getPath().toString().removeprefix(root)
            if name.endswith(suffix) and not any(part.startswith(HIDDEN) for part in name.split("/")):
                yield name
