"""Memory layout of values that stay for the life of the process.

Parsing YAML creates millions of small objects. The few that stay are spread over all the memory that parsing
used: the allocator cannot return it, and what is allocated later ends up in the holes between them. With
100,000 quotas that costs 300 MB, and slows every connection.
"""

import io
import pickle
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Pieces(io.BytesIO):
    """A file in memory whose methods are Python code. Pickle holds the interpreter lock while it works; it
    calls these methods every 64 KiB, which lets other threads run.
    """

    def write(self, data: object) -> int:
        return super().write(data)  # type: ignore[arg-type]

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size)


def frozen(make: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that it returns a copy of its result in dense memory.

    The copy is made through pickle after everything that the function allocated is released, the original
    result included. The result has to be picklable.
    """

    @wraps(make)
    def remake(*args: P.args, **kwargs: P.kwargs) -> T:
        pieces = _Pieces()
        pickle.dump(make(*args, **kwargs), pieces)
        pieces.seek(0)
        made: T = pickle.load(pieces)  # noqa: S301 - our own bytes
        return made

    return remake
