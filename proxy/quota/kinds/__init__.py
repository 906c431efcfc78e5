"""The kinds of quota, one file each. The folder is the registry: a module's KIND makes it known."""

import importlib
import pkgutil

from proxy.quota.quota import QuotaKind


def load_kinds() -> list[QuotaKind]:
    """Every module's KIND, by name."""
    names = sorted([module.name for module in pkgutil.iter_modules(__path__)])
    kinds: list[QuotaKind] = []
    for name in names:
        kind: QuotaKind = importlib.import_module(f"{__name__}.{name}").KIND
        kinds.append(kind)
    return kinds
