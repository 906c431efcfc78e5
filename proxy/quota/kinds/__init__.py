"""The kinds of quota, one module or package each. A kind is registered by its KIND in this folder."""

import importlib
import pkgutil

from proxy.quota.quota import QuotaKind


def load_kinds() -> list[QuotaKind]:
    """Every KIND in this folder, in the order of module names."""
    names = sorted([module.name for module in pkgutil.iter_modules(__path__)])
    kinds: list[QuotaKind] = []
    for name in names:
        kind: QuotaKind = importlib.import_module(f"{__name__}.{name}").KIND
        kinds.append(kind)
    return kinds
