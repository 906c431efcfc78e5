"""An archive of Java's classes, with which a job starts in less time (class-data sharing of Java 17).

`quota-pipeline prepare` writes it below the folder of this Python. Java itself ignores an archive of another
Java, or of other jars.
"""

import re
import sys
from pathlib import Path
from typing import Final

from pipeline.errors import PipelineError

FOLDER: Final = Path(sys.prefix) / "share" / "quota-pipeline"
_NAME: Final = re.compile(r"classes-(\d+)\.jsa")
_NO_WARNINGS: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java would print on each start that an archive does not fit, and which classes it does not write."""
_OWN: Final = ("Archive", "-Xshare")
"""Texts in the user's own options of archives."""


def find() -> Path | None:
    """Return the archive; None if there is none, or a part of one: Java crashes if it reads a part."""
    for file in sorted(FOLDER.glob("classes-*.jsa")):
        name = _NAME.fullmatch(file.name)
        if name and file.stat().st_size == int(name[1]):
            return file
    return None


def flags(own: str) -> list[str]:
    """Return Java's flags to read the archive; none if there is no archive, or the user chose another."""
    found = find()
    # Spark divides the flags at spaces.
    if found is None or re.search(r"[\s\"'\\]", str(found)) or any(text in own for text in _OWN):
        return []
    return [f"-XX:SharedArchiveFile={found}", *_NO_WARNINGS]


def writing(place: Path) -> str:
    """Return Java's flags to write an archive when it ends."""
    return " ".join([f"-XX:ArchiveClassesAtExit={place}", *_NO_WARNINGS])


def keep(written: Path) -> Path:
    """Move a new archive to its place, on the same file system; remove older ones. Raises PipelineError."""
    try:
        size = written.stat().st_size
        place = FOLDER / f"classes-{size}.jsa"
        written.replace(place)
        for other in FOLDER.glob("classes-*.jsa"):
            if other != place:
                other.unlink()
    except OSError as error:
        raise PipelineError(f"Java wrote no archive of classes to {FOLDER}: {error.strerror}") from error
    return place
