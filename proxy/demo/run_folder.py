"""A temporary folder for one run. A run also removes the folders of runs that were killed.

The owner of a folder has locked a file beside it, and the kernel releases the lock when the owner ends in any
way. A folder without such a file was kept on purpose.
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
    """The folder `path`, which exists from `create` to `remove`, or for good after `keep`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.gettempdir()) / f"{_PREFIX}{secrets.token_hex(6)}"
        self._mark: IO[str] | None = None

    def create(self) -> None:
        """Create the folder, for this user only."""
        remove_abandoned()
        self._mark = self.path.with_suffix(_MARK).open("w")
        fcntl.flock(self._mark, fcntl.LOCK_EX)
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        """End the run and remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._release()

    def keep(self) -> None:
        """End the run and keep the folder."""
        self._release()

    def _release(self) -> None:
        if self._mark is not None:
            Path(self._mark.name).unlink(missing_ok=True)
            self._mark.close()
            self._mark = None


def remove_abandoned() -> None:
    """Remove the folders of this user's runs that were killed."""
    for mark in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*{_MARK}"):
        try:
            with mark.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.with_suffix(""), ignore_errors=True)
                mark.unlink()
        except OSError:  # it is in use, of another user, or being removed by another run
            continue
