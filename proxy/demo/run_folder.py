"""A temporary folder for one run. What a killed run left behind, the next run removes.

Beside the folder lies a file that its owner has locked, and the kernel unlocks whatever happens to the owner.
A folder without such a file was kept for somebody to read.
"""

import fcntl
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import IO, Final

_PREFIX: Final = "kafka-quota-proxy-"
_MARK: Final = ".running"


class RunFolder:
    """The folder `path`, from `create` to `remove` or `keep`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.gettempdir()) / f"{_PREFIX}{secrets.token_hex(6)}"
        self._mark: IO[str] | None = None

    def create(self) -> None:
        """Makes the folder, for this user alone."""
        remove_abandoned()
        self._mark = self.path.with_suffix(_MARK).open("w")
        fcntl.flock(self._mark, fcntl.LOCK_EX)
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        """Ends the run, with nothing left of it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._release()

    def keep(self) -> None:
        """Ends the run, and leaves the folder where it is."""
        self._release()

    def _release(self) -> None:
        if self._mark is not None:
            Path(self._mark.name).unlink(missing_ok=True)
            self._mark.close()
            self._mark = None


def remove_abandoned() -> None:
    """Removes the folders of this user's runs that ended without a word."""
    for mark in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*{_MARK}"):
        try:
            with mark.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.with_suffix(""), ignore_errors=True)
                mark.unlink()
        except OSError:  # its owner runs, or is another user, or somebody else removes it at the same time
            continue
