"""SpareItems: reuses the items of messages that have been processed for later messages.

Otherwise a message with many partitions would create an object for each of them, and soon drop them all.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.views import NO_ITEMS, Item, View

ITEMS_AT_MOST: Final[native] = 64
"""The most items of a list that is kept: longer lists would take memory that few messages use."""
LISTS_AT_MOST: Final[native] = 64
"""The most lists that are kept, for requests and responses. With all their items, they take half a
megabyte.
"""


@final
class SpareItems:
    """Lists of items that no message uses. The connections of a listener share one object."""

    __slots__ = ("_count", "_lists")

    def __init__(self) -> None:
        self._lists: Final[list[list[Item]]] = [NO_ITEMS] * LISTS_AT_MOST
        """A stack of fixed length: a list that grows and shrinks would reallocate its memory for nearly every
        message.
        """
        self._count: native = 0
        """The number of lists in the stack."""

    def lend(self, view: View) -> None:
        """Give the items of an earlier message to one that is about to be read, whose frame is complete. Call
        settle() when it has been read.
        """
        if view.want_items and self._count > 0:
            top = self._count - 1
            self._count = top
            view.items = self._lists[top]
            self._lists[top] = NO_ITEMS

    def settle(self, view: View) -> None:
        """Remove the items of the earlier message that a message which has been read has not reused."""
        kept = view.cursor.kept
        if kept == 0:
            self.take_back(view)
        elif kept < len(view.items):
            del view.items[kept:]

    def take_back(self, view: View) -> None:
        """Take the items of a message that has been processed. Nothing may use them any more."""
        items = view.items
        if items is not NO_ITEMS:
            view.items = NO_ITEMS
            if 0 < len(items) <= ITEMS_AT_MOST and self._count < LISTS_AT_MOST:
                self._lists[self._count] = items
                self._count += 1
