"""The listeners of a configuration, in this process."""

from pathlib import Path
from typing import Any

from proxy.admin.dispatch import AdminApis
from proxy.config.settings import Settings
from proxy.quota.engines import QuotaEngines
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limits import Limits
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.server.listeners import Listeners
from proxy.tasks import Tasks
from tests.support.process.settings import read


class NoAdminApis:
    """Stands for the intercepted APIs, for listeners that serve no client."""

    api_keys = AdminApis.api_keys
    authority = None
    protected = None


def build_listeners(settings: Settings, tasks: Tasks | None = None) -> Listeners:
    """Build the listeners of these settings, and release their ports."""
    apis: Any = NoAdminApis()
    engines = QuotaEngines(load_kinds(), Limits({}))
    made = Listeners(
        settings=settings, engines=engines, admin=apis, early=EarlyPorts({}), tasks=tasks or Tasks()
    )
    for gateway in made.all:
        gateway.stop_listening()
    return made


def listeners_of(tmp_path: Path, *entries: str, more: str = "") -> Listeners:
    """Build the listeners of these entries of `listeners`; `more`: other lines of the file."""
    text = "quotas: {store: none}\nlisteners: [" + ", ".join(entries) + f"]\n{more}"
    return build_listeners(read(tmp_path, text))
