"""Reload: takes the configuration file anew when it has changed, or when asked to (SIGHUP).

Quotas change in place. What else has changed is named, and waits for a restart. A file with a mistake is
rejected whole.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from proxy.config.quotas import Quotas
from proxy.config.settings import Settings, load
from proxy.errors import KeyPath, SettingsError, spell
from proxy.server.garbage_collection import gc_paused

log = logging.getLogger(__name__)
POLL_SECONDS: Final = 0.5
Seen = tuple[int, ...] | None
"""What tells one state of a file from another; None: there is no such file."""


class Reload:
    """`apply` gets the quotas of each new file."""

    def __init__(self, path: Path, settings: Settings, apply: Callable[[Settings], Awaitable[None]]) -> None:
        """`settings` are those that the process has started with."""
        self.problem = ""
        """Why the file, as it is now, is not in force; empty when it is."""
        self._path: Final = path
        self._running = settings
        self._apply: Final = apply
        self._loaded = _seen(path)
        self._one_at_a_time: Final = asyncio.Lock()

    async def watch(self) -> None:
        """Look after the file for ever. A change counts once the file is left alone for a moment."""
        before = self._loaded
        while True:
            await asyncio.sleep(POLL_SECONDS)
            seen = _seen(self._path)
            if seen == before and seen != self._loaded:
                await self.reload("has changed")
            before = seen

    async def reload(self, why: str) -> None:
        """Take the file, or say what is wrong with it."""
        async with self._one_at_a_time:
            with gc_paused():
                await self._reload(why)

    async def _reload(self, why: str) -> None:
        self._loaded = _seen(self._path)
        try:
            settings = await asyncio.to_thread(load, self._path)
        except SettingsError as error:
            self.problem = str(error)
            log.error(
                "%s %s and is rejected; what was loaded before stays in force: %s", self._path, why, error
            )
            return
        self.problem = ""
        waiting = [spell(key) for key in _differing(_fixed(self._running), _fixed(settings))]
        quotas = _with_fixed(settings.quotas, self._running.quotas)
        changed = quotas != self._running.quotas
        if changed:
            self._running = msgspec.structs.replace(self._running, quotas=quotas)
            await self._apply(self._running)
        log.info(
            "%s %s: %s",
            self._path,
            why,
            "its quotas are in force" if changed else "its quotas are the same",
        )
        if waiting:
            log.warning("%s: a restart is needed for %s", self._path, ", ".join(waiting))


def _seen(path: Path) -> Seen:
    """Links are followed: Kubernetes changes a mounted file by a link to another folder."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size


def _fixed(settings: Settings) -> object:
    """What only a restart can change, as plain values."""
    return msgspec.to_builtins(
        msgspec.structs.replace(settings, quotas=_with_fixed(Quotas(), settings.quotas))
    )


def _with_fixed(quotas: Quotas, running: Quotas) -> Quotas:
    """These quotas, with what only a restart can change as it is in others."""
    replication = msgspec.structs.replace(quotas.replication, enforce=running.replication.enforce)
    return msgspec.structs.replace(quotas, store=running.store, replication=replication)


def _differing(old: object, new: object, at: KeyPath = ()) -> Iterator[KeyPath]:
    """The keys whose values differ, as deep as both sides have the same shape."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for name in old:
            yield from _differing(old[name], new[name], (*at, name))
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differing(one, other, (*at, place))
    elif old != new:
        yield at
