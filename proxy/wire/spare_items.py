"""SpareItems: the items of messages that are done with. Later messages are read into them.

A message with many partitions would otherwise make an object for each of them, and drop all of them soon.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.views import NO_ITEMS, Item, View

ITEMS_AT_MOST: Final[native] = 64
"""Longer lists are not kept."""
LISTS_AT_MOST: Final[native] = 64
"""Lists for requests and responses at the same time; with all their items, they take half a megabyte."""


@final
class SpareItems:
    """The connections of a listener share it."""

    __slots__ = ("_count", "_lists")

    def __init__(self) -> None:
        self._lists: Final[list[list[Item]]] = [NO_ITEMS] * LISTS_AT_MOST
        """A stack of fixed length: one that grows would allocate memory for nearly each message."""
        self._count: native = 0
        """The number of lists in the stack."""

    def lend(self, view: View) -> None:
        """Have a message that is about to be read, as a whole, use items of earlier ones. Call settle() when
        it has been read.
        """
        if view.want_items and self._count > 0:
            top = self._count - 1
            self._count = top
            view.items = self._lists[top]
            self._lists[top] = NO_ITEMS

    def settle(self, view: View) -> None:
        """Let the items of a message that has been read be those of this message alone."""
        kept = view.cursor.kept
        if kept == 0:
            self.take_back(view)
        elif kept < len(view.items):
            del view.items[kept:]

    def take_back(self, view: View) -> None:
        """Take the items of a message that is done with: nothing may use them any more."""
        items = view.items
        if items is not NO_ITEMS:
            view.items = NO_ITEMS
            if 0 < len(items) <= ITEMS_AT_MOST and self._count < LISTS_AT_MOST:
                self._lists[self._count] = items
                self._count += 1
