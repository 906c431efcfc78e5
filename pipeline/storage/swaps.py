"""Puts a new folder, or parts of it, in the place of an old one, so that a killed run leaves no mixture.

No file system does this in one step. To rename a folder, an object store copies its files and deletes the old
ones, so a run that is killed leaves some files in each of the two folders. A note beside the folder therefore
says what the new folder has, until all of it is in its place. The next run completes what the note says.
"""

import json
from collections.abc import Iterable
from typing import Final

from pipeline.storage.filesystem import FilePath

WHOLE: Final = ""
"""The part that is the whole folder."""


class Swap:
    """The change of a folder by the parts that a run has written to the folder `aside`."""

    def __init__(self, folder: FilePath, aside: FilePath) -> None:
        self._folder: Final = folder
        self._aside: Final = aside
        self._note: Final = folder.beside("swap")

    def finish(self) -> None:
        """Complete what a killed run began, and delete the folder aside."""
        if self._note.exists():
            plan = json.loads(self._note.read_text())
            for part, names in plan["new"].items():
                self._put(part, set(names))
            for part in plan["gone"]:
                self._folder.child(part).delete()
                self._folder.child(part).beside("old").delete()
            self._note.delete()
        else:
            self._folder.repair()
        self._aside.delete()

    def run(self, parts: Iterable[str], gone: Iterable[str] = ()) -> None:
        """Put parts aside in their places, remove others from the folder, and delete the folder aside.

        After an error, only finish() may delete the folder aside.
        """
        new = {part: self._aside.child(part).files() for part in parts}
        old = list(gone)
        self._note.write_text(json.dumps({"new": new, "gone": old}))
        for part in new:
            self._aside.child(part).replace(self._folder.child(part))
        for part in old:
            self._folder.child(part).remove()
        self._note.delete()
        self._aside.delete()

    def _put(self, part: str, names: set[str]) -> None:
        """Give the part these files. What is aside is not in its place yet; all else of them is."""
        target, source = self._folder.child(part), self._aside.child(part)
        here, rest = set(target.files()), set(source.files())
        if not names <= here | rest:
            # Files aside were deleted by hand.
            target.repair()
            return
        if not target.exists():
            source.move_to(target)
        else:
            for name in here - names | here & rest:
                target.child(name).delete()
            for name in rest:
                source.child(name).move_to(target.child(name))
        target.beside("old").delete()
