"""Reload: applies the configuration file again when it changes, and on SIGHUP.

Changed quotas take effect at once. Other changed keys are logged: they need a restart. A file with a mistake
is rejected as a whole.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from proxy.config.client_entries import fingerprint, without_entries
from proxy.config.file_state import FileState, file_state
from proxy.config.load import located_in
from proxy.config.quotas import Quotas
from proxy.config.settings import Settings
from proxy.errors import KeyPath, SettingsError, spell
from proxy.quota.quota import QuotaKind
from proxy.server.system.garbage_collection import gc_paused
from proxy.store.from_settings import Configuration, configuration, load_configuration

log = logging.getLogger(__name__)
FILE_CHECK_SECONDS: Final = 0.5
"""Interval of the checks for a change. A change is applied at the second check that finds the same file."""


class Reload:
    """Watches the configuration file and applies its quotas."""

    def __init__(
        self,
        path: Path,
        settings: Settings,
        kinds: Sequence[QuotaKind],
        apply: Callable[[Configuration], Awaitable[None]],
        loaded: FileState,
    ) -> None:
        """`settings` are those that the process started with, of the file in the state `loaded`. `apply` gets
        each configuration with other quotas: the running settings with the file's quotas.
        """
        self.problem = ""
        """Why the current file was rejected; empty if it was not."""
        self._path: Final = path
        self._running = without_entries(settings)
        self._entries = fingerprint(settings.quotas.clients)
        """The fingerprint of the client entries in force."""
        self._kinds: Final = kinds
        self._apply: Final = apply
        self._loaded = loaded
        self._one_at_a_time: Final = asyncio.Lock()
        self._calls = 0
        self._served = 0
        """The calls up to this one came before the last reload began."""

    async def watch(self) -> None:
        """Reload whenever the file changes; never returns. A file that is still being written is left alone
        until two checks find it the same.
        """
        before = self._loaded
        while True:
            await asyncio.sleep(FILE_CHECK_SECONDS)
            state = file_state(self._path)
            if state == before and state != self._loaded:
                await self.reload("file changed")
            before = state

    async def reload(self, reason: str) -> None:
        """Load the file and apply its quotas, or log why it is rejected.

        One reload serves all calls that wait for their turn: a storm of signals costs no more than two.
        """
        self._calls += 1
        call = self._calls
        async with self._one_at_a_time:
            if call <= self._served:
                return
            self._served = self._calls
            with gc_paused():
                await self._reload(reason)

    async def _reload(self, reason: str) -> None:
        self._loaded = file_state(self._path)
        try:
            in_file, applicable, entries = await asyncio.to_thread(self._load)
        except SettingsError as error:
            self.problem = str(error)
            log.error("%s: reload rejected, keeping the previous configuration: %s", self._path, error)
            return
        self.problem = ""
        need_restart = [spell(key) for key in _differing(_fixed(self._running), _fixed(in_file))]
        settings = without_entries(applicable.settings)
        changed = settings != self._running or entries != self._entries
        if changed:
            self._running = settings
            self._entries = entries
            await self._apply(applicable)
        outcome = "quotas applied" if changed else "quotas unchanged"
        log.info("%s: reloaded (%s): %s", self._path, reason, outcome)
        if need_restart:
            log.warning("%s: restart the proxy to apply: %s", self._path, ", ".join(need_restart))

    def _load(self) -> tuple[Settings, Configuration, bytes]:
        """The settings of the file, the running settings with its quotas, and the fingerprint of its clients'
        entries. Raises SettingsError.
        """
        loaded = load_configuration(self._path, self._kinds)
        entries = fingerprint(loaded.settings.quotas.clients)
        quotas = _with_fixed(loaded.settings.quotas, self._running.quotas)
        settings = msgspec.structs.replace(self._running, quotas=quotas)
        in_file = loaded.settings
        same_rules = settings.replication_enforced_by == in_file.replication_enforced_by
        if quotas == in_file.quotas and same_rules and settings.proxy_topics == in_file.proxy_topics:
            return in_file, Configuration(settings, loaded.rules, loaded.quotas), entries
        # Keys that need a restart also decide which configs are quotas, and which topics take no default:
        # read the quotas by the running values.
        with located_in(self._path):
            return in_file, configuration(settings, self._kinds), entries


def _fixed(settings: Settings) -> object:
    """The keys that only a restart can change, as plain values."""
    return msgspec.to_builtins(
        msgspec.structs.replace(settings, quotas=_with_fixed(Quotas(), settings.quotas))
    )


def _with_fixed(quotas: Quotas, running: Quotas) -> Quotas:
    """`quotas` with the keys that only a restart can change taken from `running`."""
    replication = msgspec.structs.replace(quotas.replication, enforce=running.replication.enforce)
    return msgspec.structs.replace(quotas, store=running.store, replication=replication)


def _differing(old: object, new: object, at: KeyPath = ()) -> Iterator[KeyPath]:
    """The keys with different values, as deep as both sides have the same structure."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for name in old:
            yield from _differing(old[name], new[name], (*at, name))
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differing(one, other, (*at, place))
    elif old != new:
        yield at
