"""Turns failures of Spark into one sentence, and keeps what Spark says about them in a log file."""

import atexit
import re
import tempfile
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from pipeline.errors import InputError, PipelineError

FAILURES: Final = (PySparkException, Py4JError, ConnectionError)
"""What calls of Spark raise."""
_LONGEST: Final = 300
"""Characters of a cause that are shown."""
_MOST_CAUSES: Final = 20
"""Causes of one exception that are followed."""
_FILE: Final = re.compile(
    r"(?:reading file:?|footer for file:?|read Parquet file|in file)\s+(?:FileStatus\{path=)?"
    r"((?:[\w+.-]+:/|/)[^\s;,}]*[^\s;,}.:])"
)
_CAUSED_BY: Final = re.compile(r"^\s*Caused by: (.*)$", re.MULTILINE)
_PYTHON_ERROR: Final = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit): .*$", re.MULTILINE)
_JAVA_CLASS: Final = re.compile(r"^(?:[a-z_]\w*\.)+\w+:\s*")
_WORKER_ENDED: Final = re.compile(
    r"Python worker exited unexpectedly"
    # Java waited for a number from it.
    r"|EOFException[^\n]*\n\s*at [^\n]*DataInputStream[^\n]*\n\s*at org\.apache\.spark\.api\.python\."
)
_ADVICE: Final = (
    (
        r"No FileSystem for scheme|FileSystem not found|UnsupportedFileSystem",
        "add the package of this file system with --conf spark.jars.packages=GROUP:ARTIFACT:VERSION",
    ),
    (
        r"OutOfMemoryError|Java heap space|MemoryError",
        "give Spark more memory, such as --conf spark.driver.memory=8g, or divide the events with --from and "
        "--to",
    ),
    (
        r"No space left on device|Disk quota exceeded|File too large",
        "free space on the disk of --out, and on that of Spark's temporary files, which --conf "
        "spark.local.dir=FOLDER moves to another disk",
    ),
    (
        r"Permission denied|AccessControlException|AccessDenied|Mkdirs failed|ParentNotDirectory",
        "use a folder to which this user has access",
    ),
    (
        r"UnknownTopicOrPartition|TimeoutException|No resolvable bootstrap|DisconnectException"
        r"|AuthenticationException",
        "check the brokers and the topic of --events, and --access and --kafka",
    ),
    (
        r"find (?:the )?data source: kafka",
        "run spark-submit with --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION (of Spark)",
    ),
    (
        r"find (?:the )?data source: (?:delta|iceberg)",
        "name the format with --format or --events-format; with spark-submit, add the package by --packages",
    ),
    (
        r"ConnectException|UnknownHostException|Connection refused",
        "check the address, and that the server runs",
    ),
)
"""Patterns in the causes of failures, and what the user can do."""


@cache
def log_file() -> Path:
    """Return the file for Spark's errors, in a new folder in the folder for temporary files. At the end of
    the process, the folder is removed if it does not have the file.
    """
    folder = Path(tempfile.mkdtemp(prefix="quota-pipeline-"))

    def remove() -> None:
        with suppress(OSError):
            folder.rmdir()

    atexit.register(remove)
    return folder / "spark.log"


def explain(error: BaseException) -> PipelineError:
    """Return the failure as one sentence: the file or cause, what to do, and where the log is.

    InputError if a file cannot be read. The log gets the traceback and the stack trace of the JVM.
    """
    text = _text(error)
    log = _write(error)
    file = _FILE.search(text)
    cause = cause_of(error)
    if file:
        return InputError(
            f"cannot read {file[1]}: {cause}; replace the file, or move it out of --events; {log}"
        )
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return PipelineError(
            "Spark's process has ended; if the system has killed it because memory ran out, lower --conf "
            f"spark.driver.memory=..., or divide the events with --from and --to; {log}"
        )
    if _WORKER_ENDED.search(text):
        return PipelineError(
            "a Python worker of Spark has ended; if the system has killed it because memory ran out, use "
            f"fewer workers, such as --master local[1], or divide the events with --from and --to; {log}"
        )
    advice = next((advice for sign, advice in _ADVICE if re.search(sign, text)), "")
    return PipelineError(
        "; ".join(["Spark failed: " + cause.removesuffix("."), *([advice] if advice else []), log])
    )


def cause_of(error: BaseException) -> str:
    """Return the first line of what caused the failure, without the names of Java's classes."""
    text = _text(error)
    python = _PYTHON_ERROR.findall(text) if "Traceback (most recent call last)" in text else []
    caused = _CAUSED_BY.findall(text)
    known = [*python[-1:], *caused[-1:], *_messages(error)[-1:], text, type(error).__name__]
    line = next(line for each in known for line in each.splitlines() if line.strip())
    shown = " ".join(_JAVA_CLASS.sub("", line.strip()).split()).rstrip(".:")
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _messages(error: BaseException) -> list[str]:
    """The messages of Java's exceptions, from the outermost to the root cause."""
    thrown: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    found: list[str] = []
    with suppress(Py4JError, ConnectionError):
        while thrown is not None and len(found) < _MOST_CAUSES:
            found.append(str(thrown.toString()))
            thrown = thrown.getCause()
    return found


def _text(error: BaseException) -> str:
    return "\n".join(_messages(error)) or _said(error)


def _said(error: BaseException) -> str:
    """The error's own text, which PySpark asks the JVM for; empty if the JVM is gone."""
    with suppress(Py4JError, ConnectionError):
        return str(error)
    return ""


def _write(error: BaseException) -> str:
    """Append the failure to the log; return a clause that names it."""
    try:
        with log_file().open("a", encoding="utf-8") as log:
            log.write("".join(traceback.format_exception(error)))
            log.write(f"{_said(error)}\n{_text(error)}\n")
    except OSError as full:
        return f"the log could not be written: {full.strerror}"
    return f"the log is {log_file()}"
