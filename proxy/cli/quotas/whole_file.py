"""write_whole(): replaces a file only when the new content is complete."""

import os
import shutil
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file, which keeps its permissions. If that fails, the previous content stays. Raises OSError.

    What is not a regular file, such as /dev/stdout, is written directly, and so is a file in a folder in
    which the user may not create another.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    target = path.resolve()
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        file = new.open("x", encoding="utf-8")
    except PermissionError:
        path.write_text(text, encoding="utf-8")
        return
    try:
        with file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)
    except OSError:
        new.unlink(missing_ok=True)
        raise
