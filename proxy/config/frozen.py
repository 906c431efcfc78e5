"""Compact: what a function returns, without the memory that it took to make it.

Parsing YAML makes millions of small objects. The few that stay keep the memory of all, in holes over which
whatever is made afterwards is scattered; with 100,000 quotas that is 300 MB, and every connection slower.
"""

import io
import pickle
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Pieces(io.BytesIO):
    """Pickle takes Python's lock for as long as it works; here it comes by every 64 KiB, and other threads
    get their turn.
    """

    def write(self, data: object) -> int:
        return super().write(data)  # type: ignore[arg-type]

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size)


def compact(make: Callable[P, T]) -> Callable[P, T]:
    """Have what a function returns made once more, when all that it made on the way is gone.

    It takes values that pickle copies.
    """

    @wraps(make)
    def remake(*args: P.args, **kwargs: P.kwargs) -> T:
        pieces = _Pieces()
        pickle.dump(make(*args, **kwargs), pieces)
        pieces.seek(0)
        made: T = pickle.load(pieces)  # noqa: S301 - our own bytes
        return made

    return remake
