"""ConfigConflicts: whether changes of configs conflict with the configs in force, or with each other.

The changes are made one by one, and can be undone, so that a caller with thousands of them gives way in
between.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from proxy.quota.config_check import ConfigCheck
from proxy.quota.limits.resources import ConfigResource
from proxy.store.sources import Alteration

Outcome = Callable[[Alteration[ConfigResource, str]], Mapping[str, str | None]]
"""The lasting values after a change; None: removed."""


class ConfigConflicts:
    """The configs in force, and the changes that have been made to them."""

    def __init__(self, checks: Sequence[ConfigCheck], outcome: Outcome) -> None:
        self._checks: Final = checks
        self._outcome: Final = outcome
        self._made = 0

    @property
    def made(self) -> int:
        """The number of changes that have been made and not undone."""
        return self._made

    def change(self, changes: Sequence[Alteration[ConfigResource, str]]) -> None:
        """Make further changes."""
        for change in changes:
            values = self._outcome(change)
            for check in self._checks:
                check.change(change.entity, values)
        self._made += len(changes)

    def undo(self, number: int) -> None:
        """Undo this number of changes, the last first."""
        for check in self._checks:
            for _ in range(number):
                check.undo()
        self._made -= number

    def conflict(self) -> str:
        """Why the changes conflict, in a sentence; empty if they do not."""
        for check in self._checks:
            problem = check.conflict()
            if problem:
                return problem
        return ""
