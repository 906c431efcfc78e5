"""Files on any file system that Hadoop knows: local paths, file://, hdfs://, s3a:// and others."""

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import SparkSession

_HIDDEN: Final = ("_", ".")
"""Spark does not read files and folders whose names begin with one of these."""


class FilePath:
    """A file or folder, named by a path or a URL."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        context: Any = spark.sparkContext
        self._jvm: Final = context._jvm
        self._path: Final = self._jvm.org.apache.hadoop.fs.Path(text)
        self._files: Final = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return bool(self._files.exists(self._path))

    def has_files(self, suffix: str = "") -> bool:
        """Whether the folder, or a folder in it, has a file that Spark reads and whose name ends so."""
        return next(self._names(suffix), None) is not None

    def delete(self) -> None:
        """Delete the file, or the folder with what is in it; do nothing if there is none."""
        self._files.delete(self._path, True)

    def read_text(self) -> str:
        """Return the file's content."""
        stream = self._files.open(self._path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, text: str) -> None:
        """Write the file, replacing an existing one."""
        stream = self._files.create(self._path, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def _names(self, suffix: str) -> Iterator[str]:
        if not self.exists():
            return
        root = self._files.makeQualified(self._path).toString()
        files = self._files.listFiles(self._path, True)
        while files.hasNext():
            name = files.next().getPath().toString().removeprefix(root)
            if name.endswith(suffix) and not any(part.startswith(_HIDDEN) for part in name.split("/")):
                yield name
