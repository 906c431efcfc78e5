"""Measures how long the turns of the event loop are, in instructions of the interpreter in the proxy's code.

Times would depend on the machine. Loops within C functions do not count; those of comprehensions and of
generators do. Compiled modules do not count either, and nor does the code of tests.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import proxy

PROXY: Final = str(Path(proxy.__file__).parent)


class TurnLengths:
    """The longest turn so far."""

    def __init__(self) -> None:
        self.longest = 0
        self._executed = 0
        self._count: Final = self._counter()
        """One function for all frames: a bound method would be made for each instruction."""

    async def watch(self) -> None:
        """Note each turn, until cancelled."""
        while True:
            self.longest = max(self.longest, self._executed)
            self._executed = 0
            await asyncio.sleep(0)

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Have the instructions of a new frame counted if it runs the proxy's code."""
        if not frame.f_code.co_filename.startswith(PROXY):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._count

    def _counter(self) -> Callable[[FrameType, str, Any], None]:
        def count(frame: FrameType, event: str, argument: Any) -> None:
            """Stay the function of its frame, as it returns nothing."""
            if event == "opcode":
                self._executed += 1

        return count


@asynccontextmanager
async def turn_lengths() -> AsyncIterator[TurnLengths]:
    """Measure the turns in the block, which does nothing but await one coroutine."""
    turns = TurnLengths()
    watching = asyncio.get_running_loop().create_task(turns.watch())
    before = sys.gettrace()
    sys.settrace(turns.trace)
    try:
        yield turns
    finally:
        sys.settrace(before)
        watching.cancel()
