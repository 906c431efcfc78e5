"""Certificates: reloads the process's TLS files as they change, and watches when certificates expire."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from proxy.security.tls import CERTIFICATE_CHECK_SECONDS, TlsFiles

SECONDS_OF_DAY: Final = 86400.0
WARN_DAYS: Final = 14.0
"""A certificate that expires sooner causes a warning. The time suffices to order one by hand."""


class Certificates:
    """The TLS files of all listeners, of the brokers' side and of the admin port."""

    def __init__(self, files: Sequence[TlsFiles | None], clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._files: Final = [each for each in files if each is not None]
        self._clock: Final = clock

    def days_left(self) -> dict[str, float]:
        """Days until the first certificate of each file expires, by file."""
        now = self._clock()
        return {file: (end - now) / SECONDS_OF_DAY for file, end in self.ends().items()}

    def ends(self) -> dict[str, float]:
        """When the first certificate of each file expires, in seconds since the epoch, by file."""
        return {file: end for files in self._files for file, end in files.not_after.items()}

    def warnings(self) -> list[str]:
        """Files that could not be reloaded, and certificates that expire soon."""
        problems = [files.problem for files in self._files if files.problem]
        return problems + [
            f"{file}: its first certificate expires in {left:.1f} days"
            for file, left in self.days_left().items()
            if left < WARN_DAYS
        ]

    async def run(self) -> None:
        """Reload changed files until cancelled."""
        while True:
            await asyncio.sleep(CERTIFICATE_CHECK_SECONDS)
            for files in self._files:
                files.refresh()
