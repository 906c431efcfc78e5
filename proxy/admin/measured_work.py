"""MeasuredWork: the CPU time of a coroutine, without that of other work while it waits."""

import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")


class MeasuredWork(Generic[T]):
    """An awaitable that runs a coroutine, and measures it. Await it in place of the coroutine."""

    def __init__(self, work: Coroutine[Any, Any, T], clock: Callable[[], float] = time.thread_time) -> None:
        """`clock` returns the CPU time of the event loop's thread, in seconds."""
        self.seconds = 0.0
        """The CPU time that the coroutine has taken so far."""
        self._work: Final = work
        self._clock: Final = clock

    def __await__(self) -> Generator[Any, Any, T]:
        error: BaseException | None = None
        while True:
            began = self._clock()
            try:
                awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self.seconds += self._clock() - began
            error = None
            try:
                yield awaited
            except BaseException as raised:  # noqa: BLE001 (it belongs to the work, also CancelledError)
                error = raised
