"""SpareItems: reuses the items of messages that have been processed for later messages.

Otherwise a message with many partitions would create an object for each of them, and soon drop them all. Most
messages of a connection have the same partitions in the same order. Such a message gets the items of an
earlier one of the same connection, so only sizes change, and what quotas have looked up for the items stays
valid.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.views import NO_ITEMS, Item, View

ITEMS_AT_MOST: Final[native] = 64
"""The most items of a list that is kept: longer lists would take memory that few messages use."""
LISTS_AT_MOST: Final[native] = 256
"""The most lists that are kept, for requests and responses of all connections. With all their items, they
take two megabytes.
"""


@final
class SpareList:
    """A list of items that no message uses, or none. It is always in the table, and serves one connection
    after the other.
    """

    __slots__ = ("items", "next", "owner")

    def __init__(self) -> None:
        self.items: list[Item] = NO_ITEMS
        self.next: SpareList | None = None
        """The next one of the connection, in one of its two stacks."""
        self.owner: SpareItems | None = None
        """The connection that has it."""


@final
class SpareTable:
    """The lists of a listener's connections. A connection that needs a further one gets the one that has been
    given out the longest time ago: many connections are idle, and have none.
    """

    __slots__ = ("_hand", "_lists")

    def __init__(self) -> None:
        self._lists: Final[list[SpareList]] = [SpareList() for _ in range(LISTS_AT_MOST)]
        self._hand: native = 0
        """The index of the list that is given out next."""

    def give_oldest(self, owner: "SpareItems") -> SpareList:
        """Give a connection the list that is next."""
        hand = self._hand
        self._hand = hand + 1 if hand + 1 < LISTS_AT_MOST else 0
        oldest = self._lists[hand]
        before = oldest.owner
        if before is not None:
            before.lose(oldest)
        oldest.owner = owner
        return oldest

    def take_items(self) -> list[Item]:
        """Take the items of the list that is given out next."""
        oldest = self._lists[self._hand]
        items = oldest.items
        oldest.items = NO_ITEMS
        return items


@final
class SpareItems:
    """The lists of one connection. With several requests in flight, it has several."""

    __slots__ = ("_empty", "_full", "_table")

    def __init__(self, table: SpareTable) -> None:
        self._table: Final = table
        self._full: SpareList | None = None
        """The lists that have items, as a stack."""
        self._empty: SpareList | None = None
        """The lists whose items are in use."""

    def lend(self, view: View) -> None:
        """Give the items of an earlier message to one that is about to be read, whose frame is complete. Call
        settle() when it has been read.
        """
        if not view.want_items:
            return
        spare = self._full
        items = NO_ITEMS
        if spare is not None:
            self._full = spare.next
            spare.next = self._empty
            self._empty = spare
            items = spare.items
            spare.items = NO_ITEMS
        view.items = self._table.take_items() if items is NO_ITEMS else items

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
        if items is NO_ITEMS:
            return
        view.items = NO_ITEMS
        if not 0 < len(items) <= ITEMS_AT_MOST:
            return
        spare = self._empty
        if spare is None:
            spare = self._table.give_oldest(self)
        else:
            self._empty = spare.next
        spare.items = items
        spare.next = self._full
        self._full = spare

    def lose(self, spare: SpareList) -> None:
        """Let another connection have a list."""
        self._full = _without(self._full, spare)
        self._empty = _without(self._empty, spare)


def _without(stack: SpareList | None, spare: SpareList) -> SpareList | None:
    """Return a stack without a list, if it has it."""
    if stack is spare:
        return spare.next
    each = stack
    while each is not None:
        if each.next is spare:
            each.next = spare.next
            break
        each = each.next
    return stack
