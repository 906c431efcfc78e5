"""Count: a counter."""

from typing import final

from mypy_extensions import i64 as native


@final
class Count:
    """A counter. With a plain int in a list, each step would create a new int."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: native = 0
